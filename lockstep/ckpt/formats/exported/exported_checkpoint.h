// SPDX-License-Identifier: BSD-3-Clause
//
// A program of torch.export as a checkpoint: what its row of format_table.cpp
// names.
//   auto file = load("net.pt2");                  // {"fc.weight": ...}
#pragma once

#include <memory>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/formats/exported/exported_program.h"

namespace lockstep::ckpt {

/// Keys of a program that holds tensors beside its state_dict.
inline constexpr std::string_view kExportedState = "state_dict";
inline constexpr std::string_view kExportedConstants = "constants";

/// True for a program of those two, each a dict, and nothing else.
bool has_constants(const Value& program);

/// The root is what Python calls `state_dict`; of a program with constants or
/// buffers that are not persistent, and of one whose names would look so, a
/// dict of `state_dict` and `constants`; of
/// several programs a dict of those by name. Tensors that share memory share
/// their storage. A pickle among them is read if `input` says how and it is a
/// checkpoint, else it is left out with a warning (W_PROGRAM_PICKLE).
/// Errors: as `read_exported`.
Result<Checkpoint> read_exported_checkpoint(
    const std::shared_ptr<const ZipReader>& zip,
    const ReadInput& input);

/// Writes the program of `file` with the tensors of `root`, which has the names
/// of `file.root`, to `path`. Nothing else changes.
/// Errors: kUnsupported (E_PROGRAM_TIED) for other names, shapes or element
/// types, all in one message; as `write_exported`.
Status rewrite_exported(
    const Checkpoint& file,
    const Value& root,
    const std::string& path,
    const WriteOptions& options,
    FileSystem& fs);

/// Refuses: nothing but a program that was read has a graph.
/// Errors: kUnsupported (E_PROGRAM_TIED).
Status write_no_program(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt
