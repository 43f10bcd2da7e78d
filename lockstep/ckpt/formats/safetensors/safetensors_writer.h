// SPDX-License-Identifier: BSD-3-Clause
//
// Writes safetensors files, byte by byte as the safetensors package 0.8 does:
// a row of format_table.cpp.
#pragma once

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/options.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Flattens `root` to dotted names. Values that are not tensors become text in
/// `__metadata__`, as does `_metadata`, an attribute of the root
/// (state_metadata.h); without any, it is {"format": "pt"}. With `shard_bytes`,
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
    const SaveOptions& options,
    FileSystem& fs);

/// "dir/model.safetensors" -> "dir/model.safetensors.index.json".
std::string safetensors_index_path(const std::string& path);

} // namespace lockstep::ckpt
