// SPDX-License-Identifier: BSD-3-Clause
//
// `check_indices` of tensor_layout.h: an index outside of the shape makes
// others read and write outside of their memory.
#include <cstring>
#include <functional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/row_major.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/print.h"

namespace lockstep::ckpt {
namespace {

Error bad_indices(std::string message) {
  return read_error(
      ErrorCode::kCorrupt,
      "E_SPARSE_INDEX",
      "sparse tensor " + std::move(message),
      "do not load it elsewhere: PyTorch does not check");
}

// Sees the number at each place; false stops.
using IndexVisitor =
    std::function<bool(const std::vector<std::int64_t>&, std::int64_t)>;

// Row-major over an int64 or int32 tensor.
Status for_each_index(const Tensor& tensor, const IndexVisitor& visit) {
  const bool is_long = tensor.dtype == DType::kInt64;
  if (!is_long && tensor.dtype != DType::kInt32) {
    return bad_indices(format(
        "has indices of type {}; expected int64 or int32",
        dtype_info(tensor.dtype).name));
  }
  std::int64_t left = tensor.numel();
  if (left == 0) {
    return {};
  }
  LOCKSTEP_ASSIGN(const ByteSpan bytes, tensor.storage->source->load());
  const std::size_t size = dtype_info(tensor.dtype).size;
  for (internal::RowMajor at(tensor); left > 0; --left, at.next()) {
    const std::byte* element = &bytes[at.offset() * size];
    std::int64_t number = 0;
    std::int32_t narrow = 0;
    std::memcpy(is_long ? static_cast<void*>(&number) : &narrow, element, size);
    if (!visit(at.index(), is_long ? number : narrow)) {
      return {};
    }
  }
  return {};
}

Error outside(std::int64_t index, std::int64_t size) {
  return bad_indices(
      format("has the index {} in a dimension of {}", index, size));
}

// indices [sparse dimensions, values]
Status check_coo(
    const LayoutTensor& tensor,
    const std::vector<std::int64_t>& sizes) {
  const Tensor& indices = *tensor.part("indices");
  const Tensor& values = *tensor.part("values");
  const bool fits =
      indices.sizes.size() == 2 && !values.sizes.empty() &&
      indices.sizes[1] == values.sizes[0] &&
      std::cmp_equal(
          indices.sizes[0] + static_cast<std::int64_t>(values.sizes.size()) - 1,
          sizes.size());
  if (!fits) {
    return bad_indices(format(
        "of shape {} has indices {} and values {}",
        shape_text(Tensor{.sizes = sizes}),
        shape_text(indices),
        shape_text(values)));
  }
  Status result;
  LOCKSTEP_TRY(for_each_index(
      indices,
      [&](const std::vector<std::int64_t>& place, std::int64_t index) {
        const std::int64_t size = sizes[static_cast<std::size_t>(place[0])];
        if (index < 0 || index >= size) {
          result = outside(index, size);
        }
        return static_cast<bool>(result);
      }));
  return result;
}

// compressed [batch..., rows + 1] and plain [batch..., values]; the blocks of
// BSR and BSC are the two dimensions of the values after those.
Status check_compressed(
    const LayoutTensor& tensor,
    const std::vector<std::int64_t>& sizes) {
  const bool by_row = tensor.part("crow_indices") != nullptr;
  const Tensor& compressed =
      *tensor.part(by_row ? "crow_indices" : "ccol_indices");
  const Tensor& plain = *tensor.part(by_row ? "col_indices" : "row_indices");
  const Tensor& values = *tensor.part("values");
  const std::size_t batch = plain.sizes.empty() ? 0 : plain.sizes.size() - 1;
  const bool blocked =
      tensor.layout == "sparse_bsr" || tensor.layout == "sparse_bsc";
  const bool fits =
      !plain.sizes.empty() && compressed.sizes.size() == plain.sizes.size() &&
      values.sizes.size() >= batch + (blocked ? 3U : 1U) &&
      values.sizes[batch] == plain.sizes[batch] && sizes.size() >= batch + 2;
  if (!fits) {
    return bad_indices(format(
        "of shape {} has compressed indices {}, plain ones {} and values {}",
        shape_text(Tensor{.sizes = sizes}),
        shape_text(compressed),
        shape_text(plain),
        shape_text(values)));
  }
  const std::size_t row_block = batch + 1;
  const std::int64_t block =
      blocked ? values.sizes[by_row ? row_block + 1 : row_block] : 1;
  const std::int64_t width = sizes[by_row ? batch + 1 : batch];
  const std::int64_t limit = block <= 0 ? 0 : width / block;
  Status result;
  LOCKSTEP_TRY(for_each_index(
      plain,
      [&](const std::vector<std::int64_t>& /*place*/, std::int64_t index) {
        if (index < 0 || index >= limit) {
          result = outside(index, limit);
        }
        return static_cast<bool>(result);
      }));
  LOCKSTEP_TRY(result);
  const std::int64_t count = plain.sizes[batch];
  std::int64_t last = 0;
  LOCKSTEP_TRY(for_each_index(
      compressed,
      [&](const std::vector<std::int64_t>& place, std::int64_t begin) {
        last = place[batch] == 0 ? 0 : last;
        if (begin < last || begin > count) {
          result = bad_indices(format(
              "has the row start {} after {} of {} values",
              begin,
              last,
              count));
        }
        last = begin;
        return static_cast<bool>(result);
      }));
  return result;
}

} // namespace

Status check_indices(const LayoutTensor& tensor) {
  if (!tensor.sizes || !tensor.layout.starts_with("sparse_")) {
    return {};
  }
  return tensor.layout == "sparse_coo"
             ? check_coo(tensor, *tensor.sizes)
             : check_compressed(tensor, *tensor.sizes);
}

} // namespace lockstep::ckpt
