// SPDX-License-Identifier: BSD-3-Clause
//
// Short ways to make tensors and to look at pickles.
//   Value t = tensor_of<float>(DType::kFloat32, {1, 2}, {2});
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Bytes that live as long as the source.
class OwnedBytes final : public StorageSource {
 public:
  explicit OwnedBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<ByteSpan> load() override {
    return as_byte_span(bytes_);
  }

 private:
  std::string bytes_;
};

/// A storage that holds `bytes`.
inline std::shared_ptr<Storage> storage_of(std::string bytes, DType dtype) {
  auto storage = std::make_shared<Storage>();
  storage->nbytes = bytes.size();
  storage->dtype = dtype;
  storage->source = std::make_shared<OwnedBytes>(std::move(bytes));
  return storage;
}

/// Row-major strides.
inline std::vector<std::int64_t> strides_of(
    const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * (sizes[i] == 0 ? 1 : sizes[i]);
  }
  return strides;
}

/// A contiguous tensor of these elements.
template <class T>
Tensor tensor_of(
    DType dtype,
    const std::vector<T>& elements,
    const std::vector<std::int64_t>& sizes) {
  std::string bytes(elements.size() * sizeof(T), '\0');
  if (!elements.empty()) {
    std::memcpy(bytes.data(), elements.data(), bytes.size());
  }
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.sizes = sizes;
  tensor.strides = strides_of(sizes);
  tensor.storage = storage_of(std::move(bytes), dtype);
  return tensor;
}

} // namespace lockstep::ckpt
