// SPDX-License-Identifier: BSD-3-Clause
//
// What every reader gives: the value tree of a checkpoint and the facts of its
// file. How a file is opened and written. What it may ask for: bounds, and the
// same as a table, from which flags, `lockstep ckpt limits` and the documents
// are made.
//   for (const LimitInfo& row : limit_table()) { limits.*row.member ... }
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/ckpt/value.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

/// A name that a pickle mentions, whether or not it is used.
struct GlobalUse {
  /// "module.name" as written; ':' before a dotted name.
  std::string name = {};
  /// Units: bytes from the start of the pickle, of the first use.
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  /// True if `torch.load(weights_only=True)` accepts it.
  bool is_safe = false;
};

/// The Python source of a class, which PyTorch up to 1.5 put into the file of a
/// whole model.
struct ClassSource {
  /// "module.Class".
  std::string name = {};
  /// Path on the machine that wrote the file; empty if it did not say.
  std::string file = {};
  /// Empty if it did not say.
  std::string text = {};
};

/// Which records carry a CRC. PyTorch can leave them out (all are 0 then).
enum class CrcState {
  kPresent,
  /// `data/*` have none (`torch.serialization.skip_data`).
  kAbsentInData,
  kAbsent,
};

/// What is odd about a file but harmless.
struct Warning {
  /// "W_TRAILING": docs/error_details.md lists them.
  std::string name = {};
  std::string text = {};

  friend bool operator==(const Warning&, const Warning&) = default;
};

/// "W_TRAILING: 1 byte follows the array"
inline std::string to_string(const Warning& warning) {
  return warning.name + ": " + warning.text;
}

/// A record of a zip checkpoint that is no part of the value: a note that
/// somebody put into the file, or bytes that no tensor uses.
struct ExtraRecord {
  /// Without the archive's root: "extra/notes.json".
  std::string name = {};
  /// Its content, lazy as that of tensors.
  std::shared_ptr<Storage> content = {};
};

struct ExportedFile;
class Budget;

/// What was read. Tensors stay lazy: bytes are touched when asked for.
struct Checkpoint {
  Value root = {};
  /// "zip" for PyTorch's container since 1.6, "torchscript" for the same with
  /// code in it (also C++ `torch::save`), "legacy" for the stream before.
  std::string format = {};
  /// Top folder inside a zip: "checkpoint.pth".
  std::string archive_name = {};
  /// Which writers make such files: "torch 2.6 or newer".
  std::string era = {};
  /// Number in the record `version`.
  std::int64_t version = 0;
  /// "little", "big", or empty if neither the file nor `LoadOptions` says it
  /// (then little).
  std::string byteorder = {};
  CrcState crc = {};
  /// Units: bytes.
  std::uint64_t file_bytes = 0;
  /// Names in the pickle, in the order of first use.
  std::vector<GlobalUse> globals = {};
  /// Storages in the order of first use, also those no tensor reaches.
  std::vector<std::shared_ptr<Storage>> storages = {};
  /// In the order of the file; an edit keeps them.
  std::vector<ExtraRecord> extra_records = {};
  /// Tensors without names that a TorchScript program holds as constants: all
  /// weights of a frozen one. Not read.
  std::uint64_t constants = 0;
  /// Units: bytes.
  std::uint64_t constant_bytes = 0;
  /// Classes whose source travels in the file, in the order of first use.
  std::vector<ClassSource> class_sources = {};
  /// The program of a `.pt2` file, whose weights `root` has; null for others.
  std::shared_ptr<const ExportedFile> program = {};
  std::vector<Warning> warnings = {};
  /// What reading counted (`Limits::budget`); tools on the value go on with it.
  std::shared_ptr<Budget> budget = {};
};

} // namespace lockstep::ckpt

/// `for (auto& [key, value] : load(path)->root.as_dict()->items)` would loop
/// over a tree that is gone.
template <>
inline constexpr bool lockstep::kNamesResult<lockstep::ckpt::Checkpoint> = true;

namespace lockstep::ckpt {

/// Bounds on what a file may ask for; beyond them it is refused (kUnsafe).
struct Limits {
  /// Units: bytes of one pickle.
  std::uint64_t max_pickle_bytes = 256ULL << 20;
  std::uint64_t max_opcodes = 50'000'000;
  std::uint64_t max_nodes = 20'000'000;
  std::uint64_t max_depth = 1000;
  std::uint64_t max_records = 1'000'000;
  /// Size of an inflated record against its size in the file.
  std::uint64_t max_ratio = 200;
  /// Units: bytes that a view may repeat beyond those of its storage, where its
  /// elements are read.
  std::uint64_t max_expanded_bytes = 64ULL << 20;
  /// Units: bytes that may be made of a file beyond 16 for each of its bytes:
  /// values, names, copies.
  std::uint64_t max_made_bytes = 64ULL << 20;
  /// What may be done for a file beyond 64 steps for each of its bytes:
  /// opcodes, values that a walk looks at, bytes that are searched,
  /// comparisons.
  std::uint64_t max_steps = 1'000'000;
  /// Read archives whose records lie in no folder (else E_ROOT).
  bool allow_no_root = false;
  /// Where all that is done for one file counts together; who starts to read
  /// one starts it. Null: each function counts by itself.
  std::shared_ptr<Budget> budget = {};
};

/// One bound that can be changed.
struct LimitInfo {
  /// "max-pickle-bytes": the flag without its dashes.
  std::string_view name = {};
  /// "bytes", "levels".
  std::string_view unit = {};
  std::string_view help = {};
  std::uint64_t Limits::*member = nullptr;
};

/// All rows, in the order of `Limits`.
std::span<const LimitInfo> limit_table();

/// A bound that no flag changes.
struct FixedLimit {
  std::string_view name = {};
  std::string_view unit = {};
  std::string_view help = {};
  /// Why it is fixed, and so large.
  std::string_view reason = {};
  std::uint64_t value = 0;
};

std::span<const FixedLimit> fixed_limits();

/// `limits` without the bounds on what a small file may expand to: deflated
/// records, views that repeat their bytes.
Limits expanding(Limits limits);

// How a checkpoint is opened and written.

class FolderFacts;

/// How a checkpoint is opened.
struct LoadOptions {
  /// Map the file and alias tensors (fast). Off: read tensors when asked for,
  /// for files that somebody else may change meanwhile. A mapped file must keep
  /// its length while a tensor of it lives: to touch bytes that were cut off
  /// ends the process with SIGBUS, as with `torch.load(mmap=True)`. Files that
  /// are replaced by a rename, as `save` does, are safe. The commands of
  /// `lockstep` map nothing.
  bool use_mmap = true;
  /// Compare the CRC of a record when its bytes are first asked for.
  bool check_crc = true;
  /// Off: compare those of pickles and other small records only, so that no
  /// tensor's bytes are touched before somebody uses them. For callers who
  /// alias a mapped file; `verify` compares the rest. No effect without
  /// `check_crc`.
  bool check_tensor_crc = true;
  Limits limits = {};
  /// The order of the bytes in zip checkpoints that do not say it, as those of
  /// torch before 2.1; without it, little. Where a file says another, the file
  /// is right, and the warning W_BYTEORDER tells of it.
  std::optional<std::endian> byteorder = {};
  /// Refuse files with names outside the allow list of PyTorch's safe loader
  /// (kUnsafe, E_UNSAFE_GLOBAL). Off: such values become `Object` nodes;
  /// nothing is executed either way.
  bool refuse_unknown_globals = false;
  /// Refuse files with any warning: the first becomes the error.
  bool strict = false;
  /// What loads of several files share of what lies beside them
  /// (`make_folder_facts`): each index and each shard's header is read once.
  /// Not for folders that change meanwhile. Null: each load looks by itself.
  /// Threads: one at a time.
  std::shared_ptr<FolderFacts> beside = {};

  [[nodiscard]] bool checks_tensors() const noexcept {
    return check_crc && check_tensor_crc;
  }
};

/// How a checkpoint is written.
struct SaveOptions {
  /// What `lockstep ckpt convert --to` takes: "pt", "pt-legacy", "libtorch",
  /// "safetensors", "npz", "dcp".
  std::string format = "pt";
  /// Top folder; empty: file name without its last extension, as PyTorch.
  std::string archive_name = {};
  bool durable = true;
  /// Off: refuse (kIo, E_EXISTS) a path where something is, at the latest when
  /// the new file gets its name; of a checkpoint of several files, each.
  bool replace = true;
  /// Formats without views (safetensors, npz): write tensors that share memory
  /// once each. Off: they are refused.
  bool clone_views = false;
  /// Units: bytes that views of all tensors may repeat beyond those of their
  /// storages, in formats without views (`Limits::max_expanded_bytes`).
  std::uint64_t max_expanded_bytes = Limits().max_expanded_bytes;
  /// Units: bytes of tensors in one file; more go to further files with an
  /// index (safetensors). 0: one file.
  std::uint64_t shard_bytes = 0;
  /// Records to write beside the value (`FormatWriter::keeps_records`: pt).
  /// Names that PyTorch's own records have are refused (E_NAME).
  std::vector<ExtraRecord> extra_records = {};
};

} // namespace lockstep::ckpt
#pragma GCC visibility pop
