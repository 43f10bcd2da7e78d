// SPDX-License-Identifier: BSD-3-Clause
//
// `check_view` of tensor.h.
#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt {
namespace {

// Strides say nothing of elements that share bytes: rows follow each other.
Status check_packed(const Tensor& tensor) {
  const std::int64_t per_byte = dtype_info(tensor.dtype).per_byte;
  const auto negative = [](std::int64_t number) { return number < 0; };
  if (tensor.sizes.size() != tensor.strides.size() ||
      tensor.sizes.size() > kMaxDimensions) {
    return corrupt_pickle(
        "E_RANK",
        "packed tensor with other sizes than strides");
  }
  if (tensor.offset < 0 || std::ranges::any_of(tensor.sizes, negative) ||
      std::ranges::any_of(tensor.strides, negative)) {
    return corrupt_pickle(
        "E_VIEW_NEGATIVE",
        "tensor with negative size or offset");
  }
  std::int64_t need = tensor.offset;
  std::int64_t bytes = 1;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    const bool is_row = i + 1 == tensor.sizes.size();
    const std::int64_t size = tensor.sizes[i];
    const std::int64_t step =
        is_row ? size / per_byte + (size % per_byte != 0 ? 1 : 0) : size;
    if (__builtin_mul_overflow(bytes, step, &bytes)) {
      return corrupt_pickle(
          "E_OVERFLOW",
          "size of a tensor does not fit 64 bits");
    }
  }
  if (__builtin_add_overflow(need, bytes, &need)) {
    return corrupt_pickle(
        "E_OVERFLOW",
        "size of a tensor does not fit 64 bits");
  }
  if (bytes != 0 && static_cast<std::uint64_t>(need) > tensor.storage->nbytes) {
    return corrupt_pickle(
        "E_VIEW_BOUNDS",
        format(
            "tensor reaches past its storage; expected at most {} bytes, got "
            "{}",
            tensor.storage->nbytes,
            need));
  }
  return {};
}

} // namespace

Status check_view(const Tensor& tensor) {
  if (dtype_info(tensor.dtype).per_byte > 1) {
    return check_packed(tensor);
  }
  const std::size_t rank = tensor.sizes.size();
  if (rank != tensor.strides.size() || rank > kMaxDimensions) {
    return corrupt_pickle(
        "E_RANK",
        format(
            "tensor has {} sizes and {} strides; expected as many, at most {}",
            rank,
            tensor.strides.size(),
            kMaxDimensions));
  }
  const auto element = static_cast<std::int64_t>(dtype_info(tensor.dtype).size);
  bool negative = tensor.offset < 0;
  bool overflow = false;
  bool empty = false;
  std::int64_t bytes = element; // of all elements, empty dimensions aside
  std::int64_t last = tensor.offset; // element behind the last one seen
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t size = tensor.sizes[i];
    const std::int64_t stride = tensor.strides[i];
    negative = negative || size < 0 || stride < 0;
    empty = empty || size == 0;
    if (negative || size == 0) {
      continue;
    }
    std::int64_t step = 0;
    overflow = __builtin_mul_overflow(bytes, size, &bytes) ||
               __builtin_mul_overflow(size - 1, stride, &step) ||
               __builtin_add_overflow(last, step, &last) || overflow;
  }
  if (negative) {
    return corrupt_pickle(
        "E_VIEW_NEGATIVE",
        "tensor with negative size or offset");
  }
  std::int64_t need = 0;
  overflow = overflow || __builtin_add_overflow(last, 1, &last) ||
             __builtin_mul_overflow(last, element, &need);
  if (overflow) {
    return corrupt_pickle(
        "E_OVERFLOW",
        "size of a tensor does not fit 64 bits");
  }
  if (!empty && static_cast<std::uint64_t>(need) > tensor.storage->nbytes) {
    return corrupt_pickle(
        "E_VIEW_BOUNDS",
        format(
            "tensor reaches past its storage; expected at most {} bytes, got "
            "{}",
            tensor.storage->nbytes,
            need));
  }
  return {};
}

} // namespace lockstep::ckpt
