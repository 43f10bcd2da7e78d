// SPDX-License-Identifier: BSD-3-Clause
//
// A record of an archive as the bytes of a storage.
#pragma once

#include <memory>

#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt {

/// All bytes of `record`, read and checked when first asked for.
/// Ownership: shares `zip`, whose record it is.
std::shared_ptr<StorageSource> record_source(
    std::shared_ptr<const ZipReader> zip,
    const ZipRecord& record,
    bool check_crc);

} // namespace lockstep::ckpt
