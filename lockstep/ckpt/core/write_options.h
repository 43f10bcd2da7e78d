// SPDX-License-Identifier: BSD-3-Clause
//
// What writers are told: the options of the caller, and what edits of a file
// that is open add to them.
#pragma once

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt {

struct WriteOptions : SaveOptions {
  /// Storages that lie in an open zip checkpoint (`LoadOptions::use_mmap` off)
  /// are copied by the kernel, with the CRC stored there: fast, and damage
  /// stays visible to those who check, but is not noticed now.
  bool reuse_checksums = false;
  /// Off: no record tells the byte order (pt), so that a file of unknown order
  /// does not claim one after an edit.
  bool byteorder_record = true;
  /// The lock of the target, where the caller holds it (`lock_for_edit`).
  /// Without it a folder that is written is locked meanwhile.
  const PathLock* lock = nullptr;
};

/// `save`. Errors: as there.
Status write_checkpoint(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt
