// SPDX-License-Identifier: BSD-3-Clause
//
// Opens and saves checkpoint files without LibTorch.
//   auto file = ckpt::load("checkpoint.pth.tar");      // Result<Checkpoint>
//   const Value* weights = file->root.find("state_dict");
//   ckpt::save("copy.pth.tar", file->root);
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Bounds on what a file may ask for; beyond them it is refused (kUnsafe).
struct Limits {
  /// Units: bytes of one pickle.
  std::uint64_t max_pickle_bytes = 256ULL << 20;
  std::uint64_t max_opcodes = 50'000'000;
  std::uint64_t max_nodes = 20'000'000;
  std::uint64_t max_depth = 1000;
  std::uint64_t max_records = 1'000'000;
};

/// How a checkpoint is opened.
struct LoadOptions {
  /// Map the file and alias tensors (fast). Off: read tensors when asked for,
  /// for files that somebody else may change meanwhile.
  bool use_mmap = true;
  /// Compare the CRC of a record when its bytes are first asked for.
  bool check_crc = true;
  Limits limits = {};
};

/// What was read. Tensors stay lazy: bytes are touched when asked for.
struct Checkpoint {
  Value root = {};
  /// "zip" for PyTorch's container since 1.6.
  std::string format = {};
  /// Top folder inside a zip: "checkpoint.pth".
  std::string archive_name = {};
};

/// Opens `path`, whatever it is called; the bytes decide.
/// Errors: kNotFound, kIo, kCorrupt, kUnsupported, kUnsafe.
Result<Checkpoint> load(
    const std::string& path,
    const LoadOptions& options = {},
    FileSystem& fs = real_fs());

/// How a checkpoint is written.
struct SaveOptions {
  /// Top folder; empty: file name without its last extension, as PyTorch.
  std::string archive_name = {};
  bool durable = true;
};

/// Writes PyTorch's zip format (stored, 64-byte aligned, protocol 2): Python
/// reads it with `torch.load(weights_only=True, mmap=True)`. Atomic: a failure
/// leaves the old file. Equal trees and names give equal bytes.
/// Errors: kIo; kUnsupported for a value Python's safe loader would refuse.
Status save(
    const std::string& path,
    const Value& root,
    const SaveOptions& options = {},
    FileSystem& fs = real_fs());

} // namespace lockstep::ckpt
