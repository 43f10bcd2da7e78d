// SPDX-License-Identifier: BSD-3-Clause
//
// Folders of `torch.distributed.checkpoint`: what their row of format_table.cpp
// names.
#pragma once

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// True for a folder with `.metadata` or with files `*.distcp`.
Result<bool> claims_dcp(const ReadInput& input);

/// The saved dict as a tree; tensors of several ranks are put together when
/// their bytes are asked for. Only files of the folder are opened.
/// Errors: as `read_dcp_metadata`; kCorrupt (E_DCP_COVERAGE, E_BOUNDS,
/// E_OVERLAP, E_NAME, E_STORAGE_SHORT), kNotFound for a missing file, those of
/// the items.
Result<Checkpoint> read_dcp(const ReadInput& input);

/// True for a folder with a safetensors file that says where its pieces of
/// tensors belong (saved_offsets.h).
Result<bool> claims_pieces(const ReadInput& input);

/// One dict of the tensors of all safetensors files in the folder, put together
/// as `HuggingFaceStorageReader` does. Sizes come from the pieces: if the last
/// rows are in a file that is missing, nothing tells.
/// Errors: kCorrupt (E_DCP_METADATA, E_DCP_COVERAGE), those of the files.
Result<Checkpoint> read_pieces(const ReadInput& input);

/// Makes the folder `path` with one data file and `.metadata`, which comes last
/// and replaces an old one in one step: a crash leaves the old checkpoint or
/// the new one. Data files of the old one are removed after that. Holds the
/// folder meanwhile. Errors: as `save`; kIo (E_LOCKED) if somebody else writes
/// or edits there; kUnsupported (E_NOT_TENSOR), kInvalidArgument (E_SAME_NAME),
/// kUnsafe (E_DEPTH, E_LIMIT) for the tree.
Status write_dcp(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs);

/// Names of attributes of the dicts whose entries become items; what is in a
/// tuple, or in a list without tensors or dicts, is kept whole.
/// Errors: as `write_dcp`.
Result<std::vector<std::string>> lost_dcp_attributes(const Value& root);

/// What an item has no place for, and keys that are text in paths. Integers
/// below "state", which the reader makes integers again, are none.
/// Errors: as `write_dcp`.
Result<std::vector<ValueChange>> dcp_changes(const Value& root);

} // namespace lockstep::ckpt
