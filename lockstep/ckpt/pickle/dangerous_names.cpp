// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/dangerous_names.h"

#include <algorithm>
#include <array>

namespace lockstep::ckpt {
namespace {

// Modules, classes and functions, each with all that is below it. Sorted by
// bytes. tests/ckpt/tools/scan/published_names.txt is the least that it covers.
// clang-format off
constexpr auto kDangerous = std::to_array<std::string_view>({
    "BaseHTTPServer", "CGIHTTPServer", "DocXMLRPCServer", "IPython",
    "SimpleHTTPServer", "SimpleXMLRPCServer", "SocketServer", "Tkinter",
    "__builtin__", "__builtins__", "_aix_support", "_asyncio", "_ctypes",
    "_dummy_thread", "_frozen_importlib", "_frozen_importlib_external",
    "_functools", "_imp", "_interpreters", "_io.FileIO", "_io.OpenWrapper",
    "_io.open", "_io.open_code", "_multiprocessing", "_operator",
    "_osx_support", "_pickle", "_posixsubprocess", "_pyio", "_pyrepl",
    "_pytest", "_signal", "_socket", "_sqlite3", "_ssl", "_testcapi", "_thread",
    "_winapi", "_winreg", "_xxsubinterpreters", "aiohttp", "antigravity",
    "anydbm", "asynchat", "asyncio", "asyncore", "atexit", "bdb", "boto3",
    "botocore", "builtins.__build_class__", "builtins.__import__",
    "builtins.__loader__", "builtins.aiter", "builtins.anext", "builtins.apply",
    "builtins.breakpoint", "builtins.classmethod", "builtins.compile",
    "builtins.copyright", "builtins.credits", "builtins.delattr",
    "builtins.dir", "builtins.eval", "builtins.exec", "builtins.execfile",
    "builtins.exit", "builtins.file", "builtins.getattr", "builtins.globals",
    "builtins.hasattr", "builtins.help", "builtins.input", "builtins.license",
    "builtins.locals", "builtins.memoryview", "builtins.open", "builtins.print",
    "builtins.property", "builtins.quit", "builtins.raw_input",
    "builtins.reduce", "builtins.reload", "builtins.setattr",
    "builtins.staticmethod", "builtins.super", "builtins.type", "builtins.vars",
    "bz2.BZ2File", "bz2.open", "cPickle", "cProfile", "cffi", "cgi", "cgitb",
    "cloudpickle", "code", "codecs.lookup", "codecs.open", "codecs.register",
    "codeop", "commands", "compileall", "concurrent", "copyreg.add_extension",
    "copyreg.constructor", "copyreg.pickle", "crypt", "ctypes", "curses",
    "dbhash", "dbm", "difflib", "dill", "distutils", "django", "docker",
    "doctest", "dumbdbm", "dummy_thread", "dummy_threading", "ensurepip",
    "fabric", "faulthandler", "fcntl", "filecmp", "fileinput", "fire", "flask",
    "ftplib", "functools", "gc", "gdbm", "gdown", "git", "glob", "grp", "gzip",
    "hotshot", "http", "httpcore", "httplib", "httpx", "huggingface_hub",
    "idlelib", "ihooks", "imaplib", "imp", "importlib", "inspect", "invoke",
    "io.FileIO", "io.OpenWrapper", "io.open", "io.open_code", "ipykernel",
    "jinja2", "joblib", "jsonpickle", "keras.models", "keras.saving", "lib2to3",
    "linecache", "llvmlite", "logging", "lzma.LZMAFile", "lzma.open", "mailbox",
    "mailcap", "mako", "marshal", "mlflow", "mmap", "modulefinder", "msilib",
    "msvcrt", "multiprocessing", "netrc", "new", "nis", "nntplib", "nt",
    "numba", "numpy.DataSource", "numpy._core.memmap",
    "numpy._core.multiarray.fromfile", "numpy._core.records.fromfile",
    "numpy._pytesttester", "numpy.ctypeslib", "numpy.distutils", "numpy.f2py",
    "numpy.fromfile", "numpy.fromregex", "numpy.genfromtxt",
    "numpy.lib._datasource", "numpy.lib._npyio_impl", "numpy.lib.format",
    "numpy.lib.npyio", "numpy.load", "numpy.loadtxt", "numpy.memmap",
    "numpy.save", "numpy.savetxt", "numpy.savez", "numpy.savez_compressed",
    "numpy.testing", "operator", "os", "ossaudiodev", "pandas.core.computation",
    "pandas.eval", "pandas.io.common", "pandas.io.pickle", "pandas.read_csv",
    "pandas.read_html", "pandas.read_json", "pandas.read_pickle",
    "pandas.read_sql", "paramiko", "pdb", "pexpect", "pickle", "pickletools",
    "pip", "pkg_resources", "pkgutil", "platform", "plumbum", "popen2",
    "poplib", "posix", "profile", "pstats", "psutil", "pty", "ptyprocess",
    "pwd", "py", "py_compile", "pydoc", "pydoc_data", "pyrepl", "pytest",
    "readline", "requests", "resource", "rlcompleter", "runpy", "sched",
    "scipy.LowLevelCallable", "scipy.io", "select", "selectors", "setuptools",
    "sh", "shelve", "shutil", "signal", "site", "sitecustomize", "smtpd",
    "smtplib", "socket", "socketserver", "spwd", "sqlite3", "ssl", "subprocess",
    "sympy.core.sympify", "sympy.lambdify", "sympy.parsing", "sympy.sympify",
    "sympy.utilities.lambdify", "sys", "syslog", "tarfile", "telnetlib",
    "tempfile", "tensorflow.io", "tensorflow.keras.models", "termios", "test",
    "thread", "threading", "timeit", "tkinter", "tokenize.open",
    "torch._C.PyTorchFileReader", "torch._C.PyTorchFileWriter",
    "torch._C._import_ir_module_from_package", "torch._C._jit_script_compile",
    "torch._C._load_for_lite_interpreter",
    "torch._C._load_for_lite_interpreter_from_buffer",
    "torch._C.import_ir_module", "torch._C.import_ir_module_from_buffer",
    "torch._classes", "torch._dynamo", "torch._export", "torch._inductor",
    "torch._lazy", "torch._ops", "torch._utils_internal", "torch.classes",
    "torch.compile", "torch.distributed.elastic", "torch.distributed.launch",
    "torch.distributed.launcher", "torch.distributed.nn.jit",
    "torch.distributed.rpc", "torch.distributed.run", "torch.export",
    "torch.from_file", "torch.fx.experimental", "torch.fx.graph_module",
    "torch.hub", "torch.jit", "torch.load", "torch.multiprocessing",
    "torch.ops", "torch.package", "torch.profiler", "torch.save",
    "torch.serialization", "torch.storage._load_from_bytes", "torch.testing",
    "torch.utils._config_module", "torch.utils._freeze",
    "torch.utils.backend_registration", "torch.utils.bottleneck",
    "torch.utils.collect_env", "torch.utils.cpp_extension",
    "torch.utils.data.datapipes", "torch.utils.mobile_optimizer",
    "torch.utils.model_dump", "torch.utils.model_zoo",
    "torch.utils.serialization", "torch.utils.show_pickle",
    "torch.utils.tensorboard", "torchvision.datasets.utils", "torchvision.io",
    "tornado", "trace", "tracemalloc", "tty", "turtle", "turtledemo", "twisted",
    "types", "unittest", "urllib", "urllib2", "urllib3", "usercustomize",
    "uuid", "venv", "virtualenv", "weakref.finalize", "webbrowser", "websocket",
    "websockets", "whichdb", "winreg", "wsgiref", "xmlrpc", "xmlrpclib", "yaml",
    "zipapp", "zipfile", "zipimport",
});
// clang-format on
static_assert(std::ranges::is_sorted(kDangerous));

} // namespace

bool is_dangerous_path(std::string_view path) {
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = path.find_first_of(".:", end + 1);
    if (std::ranges::binary_search(kDangerous, path.substr(0, end))) {
      return true;
    }
  }
  return false;
}

} // namespace lockstep::ckpt
