// SPDX-License-Identifier: BSD-3-Clause
//
// All formats, one row each: how a reader recognises its files by their bytes
// (never by name), and which writers there are. `load` and `save` of
// checkpoint.h go through these tables.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt {

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
};

/// One row of the readers.
struct FormatReader {
  /// What `Checkpoint::format` says.
  std::string_view name = {};
  /// True if the input is this reader's to judge, sound or not. Errors: kIo.
  Result<bool> (*claims)(const ReadInput& input) = nullptr;
  Result<Checkpoint> (*read)(const ReadInput& input) = nullptr;
};

/// Asked in this order; the first that claims an input reads it.
std::span<const FormatReader> format_readers();

/// One row of the writers.
struct FormatWriter {
  /// What `SaveOptions::format` takes: "pt".
  std::string_view name = {};
  std::string_view help = {};
  /// The format has no place for anything but tensors, or keeps it as text
  /// that nobody reads back.
  bool is_tensors_only = false;
  /// Writes atomically. Errors: as `save`.
  Status (*write)(
      const std::string& path,
      const Value& root,
      const SaveOptions& options,
      FileSystem& fs) = nullptr;
};

std::span<const FormatWriter> format_writers();

} // namespace lockstep::ckpt
