// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tensor.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::ckpt {

std::int64_t Tensor::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    count *= size;
  }
  return count;
}

bool Tensor::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) {
      return numel() == 0;
    }
    expected *= sizes[i];
  }
  return true;
}

std::vector<std::int64_t> row_major_strides(
    const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

Result<ByteSpan> StorageSource::view(
    std::uint64_t offset,
    std::uint64_t length,
    std::vector<std::byte>& /*scratch*/) {
  LOCKSTEP_ASSIGN(const ByteSpan all, load());
  LOCKSTEP_CHECK(offset <= all.size() && length <= all.size() - offset);
  return all.subspan(offset, length);
}

} // namespace lockstep::ckpt
