// SPDX-License-Identifier: BSD-3-Clause
//
// Opens and saves checkpoint files without LibTorch.
//   auto file = ckpt::load("checkpoint.pth.tar");      // Result<Checkpoint>
//   const Value* weights = file->root.find("state_dict");
//   ckpt::save("copy.pth.tar", file->root);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

class ByteSource;

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
  /// Read archives whose records lie in no folder (else E_ROOT).
  bool allow_no_root = false;
};

/// How a checkpoint is opened.
struct LoadOptions {
  /// Map the file and alias tensors (fast). Off: read tensors when asked for,
  /// for files that somebody else may change meanwhile.
  bool use_mmap = true;
  /// Compare the CRC of a record when its bytes are first asked for.
  bool check_crc = true;
  Limits limits = {};
  /// Refuse files with names outside the allow list of PyTorch's safe loader
  /// (kUnsafe, E_UNSAFE_GLOBAL). Off: such values become `Object` nodes;
  /// nothing is executed either way.
  bool refuse_unknown_globals = false;
  /// Refuse files with any warning: the first becomes the error.
  bool strict = false;
};

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

enum class CrcState; // zip_reader.h

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
  /// "little", "big", or empty if the file does not say (then little).
  std::string byteorder = {};
  CrcState crc = {};
  /// Units: bytes.
  std::uint64_t file_bytes = 0;
  /// Names in the pickle, in the order of first use.
  std::vector<GlobalUse> globals = {};
  /// Storages in the order of first use, also those no tensor reaches.
  std::vector<std::shared_ptr<Storage>> storages = {};
  /// Tensors without names that a TorchScript program holds as constants: all
  /// weights of a frozen one. Not read.
  std::uint64_t constants = 0;
  /// Units: bytes.
  std::uint64_t constant_bytes = 0;
  /// Classes whose source travels in the file, in the order of first use.
  std::vector<ClassSource> class_sources = {};
  /// What is odd but harmless, each "W_NAME: text".
  std::vector<std::string> warnings = {};
};

/// Opens `path`, whatever it is called; the bytes decide.
/// Errors: kNotFound, kIo, kCorrupt, kUnsupported, kUnsafe.
Result<Checkpoint> load(
    const std::string& path,
    const LoadOptions& options = {},
    FileSystem& fs = real_fs());

/// The same for bytes in memory. `name` stands for the path in messages.
/// Ownership: shares `source`.
Result<Checkpoint> load(
    const std::shared_ptr<ByteSource>& source,
    const std::string& name,
    const LoadOptions& options = {});

/// How a checkpoint is written.
struct SaveOptions {
  /// A name of `format_writers()`.
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
  /// Units: bytes of tensors in one file; more go to further files with an
  /// index (safetensors). 0: one file.
  std::uint64_t shard_bytes = 0;
  /// Storages that lie in an open zip checkpoint (`LoadOptions::use_mmap` off)
  /// are copied by the kernel, with the CRC stored there: fast, and damage
  /// stays visible to those who check, but is not noticed now.
  bool reuse_checksums = false;
};

/// Writes PyTorch's zip format (stored, 64-byte aligned, protocol 2): Python
/// reads it with `torch.load(weights_only=True, mmap=True)`. Atomic: a failure
/// leaves the old file. Equal trees and names give equal bytes.
/// Errors: kIo; kUnsupported for a value Python's safe loader would refuse (the
/// message says where: "root['optimizer']"); kInvalidArgument for a tensor that
/// leaves its storage; kCorrupt if a storage read from a file is damaged.
Status save(
    const std::string& path,
    const Value& root,
    const SaveOptions& options = {},
    FileSystem& fs = real_fs());

} // namespace lockstep::ckpt
