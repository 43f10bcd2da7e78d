// SPDX-License-Identifier: BSD-3-Clause
//
// A storage of a checkpoint with Python's buffer protocol. NumPy arrays that
// view it hold it, and it holds the mapping of the file.
//   numpy.ndarray(shape, dtype, buffer=storage, offset, strides)
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <nanobind/nanobind.h>

#include "lockstep/ckpt/tensor.h"

namespace lockstep::python {

/// Bytes that nobody can write to. Ownership: shares the source.
/// Threads: any; it never changes.
class StorageBuffer {
 public:
  /// `bytes`: what `source->load()` gave.
  StorageBuffer(std::shared_ptr<ckpt::StorageSource> source, ByteSpan bytes)
      : source_(std::move(source)), bytes_(bytes) {}

  [[nodiscard]] ByteSpan bytes() const noexcept {
    return bytes_;
  }

 private:
  std::shared_ptr<ckpt::StorageSource> source_;
  ByteSpan bytes_;
};

/// Loads the bytes of `storage` of the file `path`, without the GIL, and makes
/// the object.
/// Errors: throws into Python what loading returned.
nanobind::object make_storage_buffer(
    const ckpt::Storage& storage,
    const std::string& path);

void register_storage(nanobind::module_& module);

} // namespace lockstep::python
