// SPDX-License-Identifier: BSD-3-Clause
//
// The stream that torch.save wrote from 0.1.10 to 1.5, and still writes with
// `_use_new_zipfile_serialization=False`: five pickles, then the bytes of the
// storages. Of what is written only the keys differ: PyTorch takes addresses,
// here they are "0", "1", ..., so that equal trees give equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/core/format.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// The number in the first pickle, 0x1950a86a20f9469cfc6c, as a `BigInt` has
/// it.
inline constexpr std::string_view kLegacyMagic =
    "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
/// The number in the second.
inline constexpr std::int64_t kLegacyVersion = 1001;

/// More than the magic number of a legacy stream takes in any protocol.
inline constexpr std::size_t kLegacyHeadBytes = 64;

/// True if `head` starts with that number, pickled by any protocol. `head`: the
/// first kLegacyHeadBytes of a file, or all of a shorter one.
bool starts_like_legacy(ByteSpan head);

/// True if the first pickle is a long integer, the magic number or a wrong one.
Result<bool> claims_legacy(const ReadInput& input);

/// Errors: as `load`, with offsets in the file; E_LEGACY_MAGIC,
/// E_LEGACY_VERSION, E_LEGACY_KEYS, E_LEGACY_NUMEL, E_LEGACY_SHORT.
Result<Checkpoint> read_legacy(const ReadInput& input);

/// Writes what `torch.load(weights_only=True)` of every version since 0.4
/// reads, as far as it knows the dtypes. Errors: as `save`; kUnsupported also
/// for dtypes that need untyped storages (float8, uint16).
Status write_legacy(
    const std::string& path,
    const Value& root,
    const WriteOptions& options,
    FileSystem& fs);

} // namespace lockstep::ckpt
