// SPDX-License-Identifier: BSD-3-Clause
//
// Does a file name code? Every pickle in it is scanned, whatever the container
// and however damaged; a name that is not on the allow list is a finding.
//   const ScanReport report = scan(source, "model.pth");
//   report.verdict == Verdict::kClean
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

/// What a scan says of a file.
enum class Verdict : std::uint8_t {
  /// Every pickle was read to its end and names only allowed things; the
  /// elements of tensors and zeros behind a pickle are all that was not
  /// scanned. Says nothing of the code of a TorchScript program.
  kClean,
  /// A name outside the allow list, or a pickle hidden in another.
  kFound,
  /// Part of the file could not be scanned, and the notes say why; nothing was
  /// found in the rest.
  kUnreadable,
  /// No pickle by its bytes, and no format that holds pickles.
  kOther,
};

/// "clean", "found", "unreadable", "other".
std::string_view verdict_name(Verdict verdict);

/// A name that the allow list does not have.
struct ScanFinding {
  /// "os.system"; '?' stands for what is not spelled out. Of a program of
  /// torch.export also operators, "torch.ops.aten.from_file.default", texts
  /// that PyTorch evaluates, "exec: ...", modules that it imports, "import:
  /// ...", and compiled libraries.
  std::string name = {};
  /// True for names known to run code or reach the system; others are classes
  /// that Python would need.
  bool is_dangerous = false;
  /// True if the name is in a pickle inside a string of the pickle.
  bool is_nested = false;
  /// Record of an archive or member of a tar file, if any.
  std::string record = {};
  /// Units: bytes from the start of the record or file.
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

/// What was scanned and found. A name that any of Python's unpicklers would ask
/// for up to its first error is in it, whatever else is wrong with the file:
/// allowed ones are counted, others are findings. Where the bytes are taken for
/// a text, which may start like GLOBAL, the names are notes (W_UNLIKELY).
struct ScanReport {
  std::string path = {};
  /// "zip", "legacy", "pickle", "tar", "npy", "safetensors", "" if unknown.
  std::string format = {};
  Verdict verdict = Verdict::kOther;
  std::uint64_t pickles = 0;
  /// Different names, the allowed ones included.
  std::uint64_t names = 0;
  std::vector<ScanFinding> findings = {};
  /// Of a TorchScript program its own classes, which are code for LibTorch's
  /// interpreter and not for Python: they are no findings, nor is the code
  /// judged.
  std::optional<std::uint64_t> script_classes = {};
  /// Of programs of torch.export their different operators. Those that are not
  /// ATen's, or touch more than tensors, are findings.
  std::optional<std::uint64_t> operators = {};
  /// Warnings ("W_NESTED_PICKLE") and what stopped the scan of a part, in the
  /// order of the file.
  std::vector<Error> notes = {};
};

/// Scans bytes. `name` stands for the path in the report. Never fails: what is
/// wrong is in the report.
ScanReport scan(
    const std::shared_ptr<ByteSource>& source,
    const std::string& name,
    const Limits& limits = {});

/// What a walk leaves out or stops at.
struct ScanPathOptions {
  Limits limits = {};
  /// Folders inside folders.
  int max_depth = 32;
};

/// True for names like "model.pt": such a file that no format claims is a
/// problem, a text file is not.
bool promises_checkpoint(std::string_view path);

/// Scans a file, or every file below a folder, by its bytes, not by its name. A
/// file that no format claims is `kUnreadable` if it was named, if its ending
/// promises a checkpoint, or if it is compressed, else `kOther`.
/// Errors: kNotFound, kIo, kUnsupported (E_NOT_REGULAR) for `path` itself.
Result<std::vector<ScanReport>> scan_path(
    const std::string& path,
    const ScanPathOptions& options = {},
    FileSystem& fs = real_fs());

/// The verdict over several files: found, else unreadable, else clean, else
/// other.
Verdict worst(const std::vector<ScanReport>& reports);

} // namespace lockstep::ckpt
#pragma GCC visibility pop
