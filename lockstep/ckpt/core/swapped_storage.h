// SPDX-License-Identifier: BSD-3-Clause
//
// A storage whose numbers have their large end first in the file, as machines
// of that byte order write them.
//   storage->source =
//       swapped_storage(std::move(source), storage->nbytes, storage->dtype);
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {

/// The `bytes` bytes of `source` in the order of this machine; `source` itself
/// for elements of one byte. A complex number is two numbers. Turned when asked
/// for, block by block where that is enough. Ownership: shares `source`.
std::shared_ptr<StorageSource> swapped_storage(
    std::shared_ptr<StorageSource> source,
    std::uint64_t bytes,
    DType dtype);

} // namespace lockstep::ckpt
