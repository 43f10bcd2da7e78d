// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// The elements of a tensor row by row, where every type may lie: those of its
// storage if they are so, else a copy.
class RowsSource final : public internal::MadeSource {
 public:
  RowsSource(Tensor tensor, std::uint64_t max_expanded_bytes)
      : MadeSource(contiguous_bytes(tensor)),
        tensor_(std::move(tensor)),
        max_expanded_bytes_(max_expanded_bytes) {}

  Result<ByteSpan> load() override {
    if (internal::lies_in_rows(tensor_)) {
      LOCKSTEP_ASSIGN(const ByteSpan bytes, internal::row_bytes(tensor_));
      if (is_aligned(bytes)) {
        return bytes;
      }
    }
    LOCKSTEP_TRY(check_expansion(tensor_, max_expanded_bytes_));
    return MadeSource::load();
  }
  Status stream(const BlockVisitor& visit) override {
    LOCKSTEP_TRY(check_expansion(tensor_, max_expanded_bytes_));
    return for_each_block(tensor_, visit);
  }

 private:
  [[nodiscard]] bool is_aligned(ByteSpan bytes) const {
    const std::size_t element = dtype_info(tensor_.dtype).size;
    return std::bit_cast<std::uintptr_t>(bytes.data()) %
               std::min(element, alignof(std::max_align_t)) ==
           0;
  }

  const Tensor tensor_;
  const std::uint64_t max_expanded_bytes_;
};

Tensor row_by_row(const Tensor& tensor, std::uint64_t max_expanded_bytes) {
  Tensor result = tensor;
  if (!has_bytes(tensor)) {
    return result;
  }
  result.strides = row_major_strides(tensor.sizes);
  result.offset = 0;
  result.is_conj = false;
  result.is_neg = false;
  result.storage = std::make_shared<Storage>(*tensor.storage);
  result.storage->nbytes = contiguous_bytes(tensor);
  result.storage->source =
      std::make_shared<RowsSource>(tensor, max_expanded_bytes);
  return result;
}

} // namespace

std::vector<NamedTensor> tensors_of(const Value& root, const Limits& limits) {
  std::vector<NamedTensor> result;
  for_each_tensor(root, [&](const std::string& name, const Tensor& tensor) {
    result.push_back(
        {.name = name,
         .tensor = row_by_row(tensor, limits.max_expanded_bytes)});
  }).value();
  return result;
}

std::vector<NamedTensor>
tensors(const std::string& path, const LoadOptions& options, FileSystem& fs) {
  const Checkpoint file = load(path, options, fs).value();
  return tensors_of(file.root, counting(options.limits, file));
}

} // namespace lockstep::ckpt
