// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <ATen/ops/randn.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/internal/byte_hash.h"
#include "lockstep/data/internal/check_index.h"

namespace lockstep {
namespace {

at::Tensor draw(std::int64_t size, std::int64_t length) {
  if (size < 0 || length < 0) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.random",
         .message = format(
             "size and length must not be negative, got {} and {}",
             size,
             length)});
  }
  return at::randn({length, size});
}

} // namespace

RandomDataset::RandomDataset(std::int64_t size, std::int64_t length)
    : data_(draw(size, length)) {}

std::int64_t RandomDataset::size() const {
  return data_.size(0);
}

std::vector<std::int64_t> RandomDataset::sample_shape() const {
  return {data_.size(1)};
}

std::int64_t RandomDataset::num_classes() const {
  return 0;
}

std::uint64_t RandomDataset::digest() const {
  return internal::hash_of(data_.const_data_ptr(), data_.nbytes());
}

void RandomDataset::read(
    std::span<const std::int64_t> indices,
    std::int64_t /*epoch*/,
    std::span<float> images,
    TargetRows /*targets*/) const {
  const std::int64_t width = data_.size(1);
  const auto* rows = data_.const_data_ptr<float>();
  float* out = images.data();
  for (const std::int64_t index : indices) {
    internal::check_index(index, size());
    out = std::copy_n(rows + index * width, width, out);
  }
}

} // namespace lockstep
