// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/made_source.h"

#include <cstring>
#include <memory>
#include <string>

namespace lockstep::ckpt::internal {
namespace {

class ScalarBytes final : public StorageSource {
 public:
  explicit ScalarBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<ByteSpan> load() override {
    return as_byte_span(bytes_);
  }

 private:
  std::string bytes_;
};

template <class T>
Value scalar_of(DType dtype, T number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  auto storage = std::make_shared<Storage>(
      Storage{.nbytes = bytes.size(), .dtype = dtype});
  storage->source = std::make_shared<ScalarBytes>(std::move(bytes));
  return Tensor{.dtype = dtype, .storage = std::move(storage)};
}

} // namespace

Value scalar_tensor(std::int64_t number) {
  return scalar_of(DType::kInt64, number);
}

Value scalar_tensor(float number) {
  return scalar_of(DType::kFloat32, number);
}

} // namespace lockstep::ckpt::internal
