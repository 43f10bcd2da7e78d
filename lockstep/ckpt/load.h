// SPDX-License-Identifier: BSD-3-Clause
//
// Opens and saves checkpoint files without LibTorch.
//   auto file = ckpt::load("checkpoint.pth.tar");      // Result<Checkpoint>
//   const Value* weights = file->root.find("state_dict");
//   ckpt::save("copy.pth.tar", file->root);
#pragma once

#include <memory>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/options.h"

namespace lockstep::ckpt {

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
