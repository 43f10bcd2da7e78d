// SPDX-License-Identifier: BSD-3-Clause
//
// What other scanners call dangerous is so for ours.
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/dangerous_names.h"
#include "lockstep/ckpt/pickle/globals.h"

namespace lockstep::ckpt {
namespace {

TEST(PublishedNames, RunCode) {
  std::ifstream file("tests/ckpt/tools/scan/published_names.txt");
  std::string line;
  std::size_t count = 0;
  while (std::getline(file, line)) {
    const auto parts = split(line, ' ');
    if (line.starts_with('#') || parts.size() != 3) {
      continue;
    }
    ++count;
    const std::string name = parts[2] == "*" ? "anything" : parts[2];
    EXPECT_TRUE(find_global(dotted_name(parts[1], name)).is_dangerous())
        << line;
    EXPECT_TRUE(
        parts[2] != "*" ||
        find_global(parts[1] + ".inner.anything").is_dangerous())
        << line;
  }
  EXPECT_GT(count, 250U);
}

// Names that attacks have used, of modules that are harmless otherwise.
TEST(DangerousNames, AreRatedOneByOne) {
  for (const char* name :
       {"torch.storage._load_from_bytes",
        "torch.hub.load",
        "io.open_code",
        "torch.serialization.load",
        "torch.serialization._legacy_load",
        "uuid._get_command_stdout",
        "types.CodeType",
        "codecs.open",
        "_operator.methodcaller",
        "logging.FileHandler",
        "_io.FileIO",
        "logging.config.listen",
        "cloudpickle.cloudpickle._make_function",
        "cloudpickle.cloudpickle_fast._function_setstate",
        "venv.create",
        "numpy.f2py.crackfortran.getlincoef",
        "numpy.load",
        "pandas.eval",
        "numpy.testing._private.utils.runstring",
        "__builtin__.file",
        "torch.fx.graph_module.reduce_graph_module",
        "cPickle.loads",
        "torch.utils.cpp_extension.load_inline",
        "torch.ops.load_library",
        "distutils.spawn.spawn",
        "smtplib.SMTP",
        "imaplib.IMAP4_stream",
        "joblib.load",
        "dill._dill._create_function",
        "copyreg.add_extension"}) {
    EXPECT_TRUE(find_global(name).is_dangerous()) << name;
  }
}

TEST(DangerousNames, LeaveDataAlone) {
  for (const char* name :
       {"torch.FloatStorage",
        "torch.serialization._get_layout",
        "collections.OrderedDict",
        "numpy.dtype",
        "numpy.ndarray",
        "torch._dynamo.decorators._DimRange",
        "builtins.set",
        "osmium.system",
        "torch.jit._pickle.build_intlist",
        "argparse.Namespace",
        "os2.system",
        "joblib.numpy_pickle.NumpyArrayWrapper",
        "io.BytesIO",
        "copyreg._reconstructor",
        "builtins.list",
        "torch.nn.modules.linear.Linear",
        "pathlib.PosixPath",
        "torch._utils._rebuild_tensor_v2",
        "sklearn.linear_model.Ridge"}) {
    EXPECT_FALSE(find_global(name).is_dangerous()) << name;
  }
}

TEST(DangerousNames, CoverWhatIsBelowThem) {
  EXPECT_TRUE(is_dangerous_path("os"));
  EXPECT_TRUE(is_dangerous_path("os.path.join"));
  EXPECT_TRUE(is_dangerous_path("os:path.join"));
  EXPECT_FALSE(is_dangerous_path("osx.system"));
  EXPECT_FALSE(is_dangerous_path("my.os"));
  EXPECT_FALSE(is_dangerous_path(""));
}

} // namespace
} // namespace lockstep::ckpt
