// SPDX-License-Identifier: BSD-3-Clause
//
// Safetensors files, also several of them beside an index: what their rows of
// format_table.cpp name. Written byte by byte as the safetensors package 0.8
// does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/formats/safetensors/folder_facts.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Attribute of the root that holds `__metadata__`, a dict of strings.
inline constexpr const char* kSafetensorsMetadata = "__metadata__";

/// Names of the attributes that `write_safetensors` leaves out: what does not
/// fit of `_metadata` (state_metadata.h), and all but the root's
/// `__metadata__`. Errors: as `write_safetensors`.
Result<std::vector<std::string>> lost_safetensors_attributes(const Value& root);

/// True if eight bytes that are not text are followed by an object.
Result<bool> claims_safetensors(const ReadInput& input);

/// The root is a dict of lazy tensors, in the order of their bytes; an
/// OrderedDict with the attribute `__metadata__` if the file has any, and with
/// `_metadata` if it was made of a state_dict that had it.
/// Errors: as `read_safetensors_header`.
Result<Checkpoint> read_safetensors(const ReadInput& input);

/// True for a JSON object with the word "weight_map", and for a folder with a
/// file "*.index.json".
Result<bool> claims_sharded_index(const ReadInput& input);

/// One dict of all tensors, in the order of the index. Only files beside the
/// index are opened, each once. Of the indices in a folder it reads the only
/// one, or the only one of safetensors files.
/// Errors: kCorrupt (E_INDEX), kNotFound (E_INDEX) for a missing file,
/// kInvalidArgument (E_INDEX) for a folder with several indices, and those of
/// the files.
Result<Checkpoint> read_sharded_index(const ReadInput& input);

/// "model-00001-of-00002.bin": number 1 of 2.
struct ShardNumber {
  std::uint32_t number = 0;
  std::uint32_t of = 0;
};
/// Nothing for the name of what is not one file of several.
std::optional<ShardNumber> shard_number(std::string_view name);

/// Says (W_SHARD) that the file `path` is one of those that an index beside it
/// names; nothing for other files, and for names that no shard has.
std::optional<Warning>
warn_of_shard(const std::string& path, FileSystem& fs, FolderFacts& facts);

/// Flattens `root` to dotted names. Values that are not tensors become text in
/// `__metadata__`, as does `_metadata` of the dicts (state_metadata.h); without
/// any, it is {"format": "pt"}. With `shard_bytes`,
/// tensors that do not fit one file go to "NAME-00001-of-00003.safetensors"
/// beside `path`, and the index "NAME.safetensors.index.json" comes last. With
/// `replace`, the index names all of the old files or all of the new ones at
/// every moment; then a single file `path` of an earlier save is removed (and,
/// where one file is enough, an earlier index).
/// Errors: as `save`; kUnsupported (E_DTYPE, E_NOT_TENSOR), kInvalidArgument
/// (E_SHARED_TENSOR, E_SAME_NAME, E_NAME) with the tensor's name.
Status write_safetensors(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs);

/// "dir/model.safetensors" -> "dir/model.safetensors.index.json".
std::string safetensors_index_path(const std::string& path);

} // namespace lockstep::ckpt
