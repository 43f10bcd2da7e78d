// SPDX-License-Identifier: BSD-3-Clause
//
// Short ways to make tensors and to look at pickles.
//   Value t = tensor_of<float>(DType::kFloat32, {1, 2}, {2});
#pragma once

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/walk.h"

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
  tensor.strides = row_major_strides(sizes);
  tensor.storage = storage_of(std::move(bytes), dtype);
  return tensor;
}

/// The keys of a dict, in its order.
inline std::vector<std::string> keys_of(const Value& dict) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : dict.as_dict()->items) {
    keys.push_back(key_text(key));
  }
  return keys;
}

/// A vector of float32.
inline Tensor floats(const std::vector<float>& values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return tensor_of<float>(DType::kFloat32, values, {size});
}

/// What `name` makes of these arguments.
inline Value call_of(std::string name, std::initializer_list<Value> arguments) {
  return Object{
      .global = std::move(name),
      .args = std::make_shared<Value>(Value::tuple(arguments))};
}

/// A tensor of bytes.
inline Tensor bytes_tensor(
    const std::string& bytes,
    const std::vector<std::int64_t>& sizes) {
  return tensor_of<char>(
      DType::kUInt8,
      std::vector<char>(bytes.begin(), bytes.end()),
      sizes);
}

} // namespace lockstep::ckpt
