// SPDX-License-Identifier: BSD-3-Clause
//
// `check_view` of tensor.h.
#include <algorithm>
#include <optional>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

bool has_negative(const std::vector<std::int64_t>& numbers) {
  return std::ranges::any_of(numbers, [](std::int64_t n) { return n < 0; });
}

bool is_empty(const Tensor& tensor) {
  return std::ranges::find(tensor.sizes, 0) != tensor.sizes.end();
}

// Bytes from the start of the storage to the end of the view, where a dimension
// of size 0 counts as 1; nothing if they, or the bytes of all elements, leave
// 64 bits.
std::optional<std::int64_t> strided_end(const Tensor& tensor) {
  const auto element = static_cast<std::int64_t>(dtype_info(tensor.dtype).size);
  std::int64_t all = element;
  std::int64_t last = tensor.offset;
  bool overflow = false;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    const std::int64_t size = std::max<std::int64_t>(tensor.sizes[i], 1);
    std::int64_t step = 0;
    overflow = __builtin_mul_overflow(all, size, &all) ||
               __builtin_mul_overflow(size - 1, tensor.strides[i], &step) ||
               __builtin_add_overflow(last, step, &last) || overflow;
  }
  std::int64_t end = 0;
  overflow = overflow || __builtin_add_overflow(last, 1, &last) ||
             __builtin_mul_overflow(last, element, &end);
  return overflow ? std::nullopt : std::optional(end);
}

// The same of elements that share bytes. Strides say nothing of those, rows
// follow each other; but what is computed from them must fit, too.
std::optional<std::int64_t> packed_end(const Tensor& tensor) {
  if (!strided_end(tensor)) {
    return std::nullopt;
  }
  const std::int64_t per_byte = dtype_info(tensor.dtype).per_byte;
  std::int64_t bytes = 1;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    const std::int64_t size = std::max<std::int64_t>(tensor.sizes[i], 1);
    const bool is_row = i + 1 == tensor.sizes.size();
    const std::int64_t step =
        is_row ? size / per_byte + (size % per_byte != 0 ? 1 : 0) : size;
    if (__builtin_mul_overflow(bytes, step, &bytes)) {
      return std::nullopt;
    }
  }
  std::int64_t end = 0;
  return __builtin_add_overflow(tensor.offset, bytes, &end)
             ? std::nullopt
             : std::optional(end);
}

} // namespace

Status check_view(const Tensor& tensor) {
  const std::size_t rank = tensor.sizes.size();
  if (rank != tensor.strides.size() || rank > kMaxDimensions) {
    return corrupt_file(
        "E_RANK",
        format(
            "tensor has {} sizes and {} strides; expected as many, at most {}",
            rank,
            tensor.strides.size(),
            kMaxDimensions));
  }
  if (tensor.offset < 0 || has_negative(tensor.sizes) ||
      has_negative(tensor.strides)) {
    return corrupt_file(
        "E_VIEW_NEGATIVE",
        "tensor with negative size or offset");
  }
  const bool is_packed = dtype_info(tensor.dtype).per_byte > 1;
  const auto end = is_packed ? packed_end(tensor) : strided_end(tensor);
  if (!end) {
    return corrupt_file(
        "E_OVERFLOW",
        "size of a tensor does not fit in 64 bits");
  }
  if (!is_empty(tensor) &&
      static_cast<std::uint64_t>(*end) > tensor.storage->nbytes) {
    return corrupt_file(
        "E_VIEW_BOUNDS",
        format(
            "tensor reaches past its storage; expected at most {} bytes, got "
            "{}",
            tensor.storage->nbytes,
            *end));
  }
  return {};
}

} // namespace lockstep::ckpt
