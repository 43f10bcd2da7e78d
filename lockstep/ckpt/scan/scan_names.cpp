// SPDX-License-Identifier: BSD-3-Clause
//
// Which names are fine, and which are worse than unknown.
#include <algorithm>
#include <array>

#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/scan/internal/scan_report.h"
#include "lockstep/ckpt/scan/scan.h"

namespace lockstep::ckpt {
namespace {

// Classes that only hold data, beyond those of PyTorch's safe loader: the
// metadata of sharded checkpoints.
constexpr std::array<std::string_view, 12> kDataOnly{
    "pathlib.PosixPath",
    "pathlib.PurePosixPath",
    "torch.distributed.checkpoint.filesystem._StorageInfo",
    "torch.distributed.checkpoint.metadata.BytesStorageMetadata",
    "torch.distributed.checkpoint.metadata.ChunkStorageMetadata",
    "torch.distributed.checkpoint.metadata.Metadata",
    "torch.distributed.checkpoint.metadata.MetadataIndex",
    "torch.distributed.checkpoint.metadata.StorageMeta",
    "torch.distributed.checkpoint.metadata.TensorProperties",
    "torch.distributed.checkpoint.metadata.TensorStorageMetadata",
    "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING",
    "torch.nested._internal.nested_tensor._rebuild_njt",
};

// Modules that run code, load code or reach the system. Only for the text of
// a report: what is not allowed is a finding in any case.
constexpr std::array<std::string_view, 44> kDangerous{
    "_pickle", "aiohttp",         "asyncio",   "bdb",        "cProfile",
    "code",    "codeop",          "commands",  "ctypes",     "distutils",
    "doctest", "ensurepip",       "ftplib",    "functools",  "http",
    "httplib", "idlelib",         "importlib", "imp",        "linecache",
    "marshal", "multiprocessing", "nt",        "operator",   "os",
    "pdb",     "pickle",          "pip",       "pkgutil",    "platform",
    "posix",   "profile",         "pty",       "pydoc",      "requests",
    "runpy",   "shutil",          "socket",    "subprocess", "sys",
    "timeit",  "trace",           "urllib",    "webbrowser",
};

constexpr std::array<std::string_view, 15> kDangerousNames{
    "builtins.__import__",
    "builtins.apply",
    "builtins.breakpoint",
    "builtins.compile",
    "builtins.delattr",
    "builtins.eval",
    "builtins.exec",
    "builtins.execfile",
    "builtins.getattr",
    "builtins.globals",
    "builtins.input",
    "builtins.open",
    "builtins.setattr",
    "builtins.vars",
    "torch.load",
};

} // namespace

namespace internal {

bool is_allowed_name(std::string_view name) {
  return find_global(name).is_safe ||
         std::ranges::find(kDataOnly, name) != kDataOnly.end();
}

} // namespace internal

bool is_dangerous_name(std::string_view given) {
  std::string name(given);
  constexpr std::string_view kOldBuiltins = "__builtin__.";
  if (name.starts_with(kOldBuiltins)) {
    name = "builtins." + name.substr(kOldBuiltins.size());
  }
  const std::string_view top =
      std::string_view(name).substr(0, name.find_first_of(".:"));
  return name.starts_with('?') || name.find(':') != std::string::npos ||
         std::ranges::find(kDangerous, top) != kDangerous.end() ||
         std::ranges::find(kDangerousNames, name) != kDangerousNames.end();
}

} // namespace lockstep::ckpt
