// SPDX-License-Identifier: BSD-3-Clause
//
// A record of an archive as the bytes of a storage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {

/// `nbytes` of `record` from `offset` on, read and checked when first asked
/// for; a shorter record is an error then (E_STORAGE_SHORT). Units: bytes.
/// Ownership: shares `zip`, whose record it is.
std::shared_ptr<StorageSource> record_source(
    std::shared_ptr<const ZipReader> zip,
    const ZipRecord& record,
    std::uint64_t nbytes,
    bool check_crc,
    std::uint64_t offset = 0);

/// The text of `record`, a table or the like. Errors: kUnsafe (E_LIMIT) for one
/// that is larger than a pickle may be; kCorrupt (E_CRC), kIo.
Result<std::string> record_text(
    const ZipReader& zip,
    const ZipRecord& record,
    const LoadOptions& options);

} // namespace lockstep::ckpt
