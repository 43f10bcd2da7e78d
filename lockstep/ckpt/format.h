// SPDX-License-Identifier: BSD-3-Clause
//
// What a format is: how a reader recognises its files by their bytes (never by
// name), and how a writer makes them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/options.h"

namespace lockstep::ckpt {

/// `load` of bytes in memory.
using PartLoader = Result<Checkpoint> (*)(
    const std::shared_ptr<ByteSource>& source,
    const std::string& name,
    const LoadOptions& options);

/// What a reader gets. Views live as long as the call.
struct ReadInput {
  /// Null for a directory.
  std::shared_ptr<ByteSource> source = {};
  /// The first `kDiagnoseBytes` bytes, fewer if the file is shorter.
  ByteSpan head = {};
  /// Path for messages and, unless the bytes came from elsewhere, to find
  /// files beside it (shards).
  std::string path = {};
  LoadOptions options = {};
  /// Null if the bytes do not come from a file: then there is nothing beside.
  FileSystem* fs = nullptr;
  /// Reads what is a checkpoint of its own inside or beside this one.
  PartLoader load_part = nullptr;
};

/// One row of the readers.
struct FormatReader {
  /// What `Checkpoint::format` says.
  std::string_view name = {};
  /// True if the input is this reader's to judge, sound or not. Errors: kIo.
  Result<bool> (*claims)(const ReadInput& input) = nullptr;
  Result<Checkpoint> (*read)(const ReadInput& input) = nullptr;
};

/// What a format keeps of `_metadata`, the attribute of a state_dict with the
/// versions of its modules.
enum class KeptMetadata {
  kAll,
  /// That of the root.
  kOfRoot,
  kNone,
};

/// One row of the writers.
struct FormatWriter {
  /// What `SaveOptions::format` takes: "pt".
  std::string_view name = {};
  std::string_view help = {};
  /// The format has no place for anything but tensors, or keeps it as text
  /// that nobody reads back.
  bool is_tensors_only = false;
  KeptMetadata metadata = KeptMetadata::kAll;
  /// Writes atomically. Errors: as `save`.
  Status (*write)(
      const std::string& path,
      const Value& root,
      const SaveOptions& options,
      FileSystem& fs) = nullptr;
};

} // namespace lockstep::ckpt
