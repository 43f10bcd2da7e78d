// SPDX-License-Identifier: BSD-3-Clause
//
// A storage whose bytes lie in one piece inside a file, as in safetensors and
// npy files.
//   storage->source = make_range_storage(source, 1024, 4096);
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Bytes [offset, offset + length) of `source`: aliased if it is mapped, else
/// read when first asked for. Units: bytes. Ownership: shares `source`.
std::shared_ptr<StorageSource> make_range_storage(
    std::shared_ptr<ByteSource> source,
    std::uint64_t offset,
    std::uint64_t length);

} // namespace lockstep::ckpt
