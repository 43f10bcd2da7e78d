// SPDX-License-Identifier: BSD-3-Clause
//
// What there is to know of a format outside of its folder: one row. Files are
// recognised by their bytes, never by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/value_changes.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/walk.h"

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

/// How a format is written.
struct FormatWriter {
  /// What `SaveOptions::format` takes: "pt". Empty if it is only read.
  std::string_view name = {};
  std::string_view help = {};
  /// The format has no place for anything but tensors, or keeps it as text
  /// that nobody reads back.
  bool is_tensors_only = false;
  /// Names of attributes of dicts (`attribute_name`) that the format has no
  /// place for: `_metadata`, the versions of a state_dict's modules,
  /// `__metadata__` of a safetensors file, others. Null if it keeps all.
  /// Errors: as `write`.
  Result<std::vector<std::string>> (*lost_attributes)(const Value& root) =
      nullptr;
  /// Values that become others. Null if none does. Errors: as `write`.
  Result<std::vector<ValueChange>> (*changed_values)(const Value& root) =
      nullptr;
  /// Takes the values of a TorchScript program (`script_class`) as they are,
  /// without the code; other formats take its tensors (`script_weights`).
  bool keeps_script_values = false;
  /// The format has a place for records beside the value
  /// (`SaveOptions::extra_records`).
  bool keeps_records = false;
  /// Views are written as all their elements: one that repeats a byte takes
  /// what it repeats.
  bool expands_views = false;
  /// Off: a file that was read holds more than is written, so that no edit
  /// takes its place.
  bool can_rewrite = true;
  /// Nothing but what was read of such a file is written (`rewrite`): no writer
  /// for other values.
  bool needs_file = false;
  Status (*rewrite)(
      const Checkpoint& file,
      const Value& root,
      const std::string& path,
      const WriteOptions& options,
      FileSystem& fs) = nullptr;
  /// The file that stands for several of `SaveOptions::shard_bytes`; null for
  /// a format of one file.
  std::string (*index_path)(const std::string& path) = nullptr;
  /// Writes atomically. Errors: as `save`.
  Status (*write)(
      const std::string& path,
      const Value& root,
      const WriteOptions& options,
      FileSystem& fs) = nullptr;
};

/// Where pickles, and so names that run code, may be in a file.
enum class PicklePlace {
  kNowhere,
  /// In the file from its start, one after the other.
  kStream,
  /// In records of a zip archive, members of a tar archive, an npy array.
  kRecords,
  kMembers,
  kArray,
  /// In other files, which are looked at themselves.
  kElsewhere,
};

/// A format of which PyTorch's loader knows names beyond the allow list.
struct OwnNames {
  bool (*contains)(std::string_view name) = nullptr;
  /// Who knows them: "TorchScript".
  std::string_view owner = {};
};

/// One row.
struct Format {
  /// What `Checkpoint::format` says: "zip".
  std::string_view name = {};
  /// What people call it; the name if empty.
  std::string_view title = {};
  /// Endings of its files, the usual one first: ".pt .pth".
  std::string_view endings = {};
  /// What people take a file of such an ending for: "a PyTorch file". Empty if
  /// the ending says nothing.
  std::string_view kind = {};
  /// What stands before a storage's key in lists: "data/". Empty if the format
  /// has no keys.
  std::string_view key_label = {};
  PicklePlace pickles = PicklePlace::kNowhere;
  /// A folder of several files.
  bool is_folder = false;
  /// A zip archive with one record for each storage: `verify` looks at all
  /// records.
  bool is_archive = false;
  /// Records with the Python source of classes are below this: "code/".
  std::string_view source_folder = {};
  OwnNames own_names = {};
  /// What a reader of the summary should know.
  std::string_view hint = {};
  /// True if the input is this reader's to judge, sound or not. Errors: kIo.
  /// Null for a variant that the reader of another row tells.
  Result<bool> (*claims)(const ReadInput& input) = nullptr;
  Result<Checkpoint> (*read)(const ReadInput& input) = nullptr;
  FormatWriter writer = {};
};

} // namespace lockstep::ckpt
