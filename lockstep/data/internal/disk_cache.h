// SPDX-License-Identifier: BSD-3-Clause
//
// Pixels in one mapped file: the "disk" of pixel_cache.h.
//
// The file: 64 bytes of head (`Head`), a checksum of 8 bytes for each sample
// (0: not there yet), then the samples, from a multiple of 64 bytes on, one
// after the other. Numbers are those of the machine: the file does not travel.
#pragma once

#include <memory>
#include <string>

#include "lockstep/data/internal/pixel_cache.h"

namespace lockstep::internal {

/// Errors: throws kInvalidArgument (E_CACHE) for an empty folder, kIo, and what
/// `fs` returns for the files.
std::unique_ptr<PixelCache> make_disk_cache(
    const std::string& folder,
    const CachedList& list,
    FileSystem& fs);

} // namespace lockstep::internal
