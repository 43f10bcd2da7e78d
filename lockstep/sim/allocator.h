// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of simulated devices: host memory, counted per device.
#pragma once

#include <cstddef>

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

namespace c10 {
struct DeviceAllocator;
} // namespace c10

namespace lockstep::sim {

/// Allocates on the current device, with the alignment of CPU memory.
/// Errors: throws c10::OutOfMemoryError past the device's limit.
c10::DeviceAllocator& allocator();

/// The bytes of a CPU storage as memory of device `index`.
/// Ownership: holds `storage`.
/// Errors: as `allocator`.
c10::DataPtr adopt(c10::Storage storage, c10::DeviceIndex index);

/// Makes a storage of a simulated device larger or smaller, on its device.
void resize_storage(c10::StorageImpl& storage, std::size_t bytes);

/// Host memory that `is_pinned` knows; that is all pinning means here.
c10::Allocator& pinned_allocator();
bool is_pinned(const void* data);

} // namespace lockstep::sim
