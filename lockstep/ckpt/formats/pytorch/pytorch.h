// SPDX-License-Identifier: BSD-3-Clause
//
// PyTorch's zip container (1.6 and newer): what its rows of format_table.cpp
// name.
#pragma once

#include <memory>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {

/// True if the bytes start like an archive, or an archive ends them, with
/// foreign bytes in front.
Result<bool> claims_zip(const ReadInput& input);

/// Errors: kCorrupt, kUnsupported, kUnsafe, kIo.
Result<Checkpoint> read_zip(const ReadInput& input);

/// Reads what is left of a damaged archive: the records of version and byte
/// order may be missing, and so may storages; their `source` is null or fails.
/// Errors: those of the pickle, which must be sound.
Result<Checkpoint> read_zip_remains(
    std::shared_ptr<const ZipReader> zip,
    const LoadOptions& options);

/// How to read an archive behind foreign bytes; "" if there is none that the
/// repair takes.
std::string foreign_bytes_hint(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits);

/// As `save_bytes`.
Result<std::string> pt_bytes(const Value& root);

/// As `save` with the format "pt".
Status write_pt(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt
