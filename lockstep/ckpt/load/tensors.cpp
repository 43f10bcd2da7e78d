// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// What the tensors of one tree may expand together. Threads: any.
class SharedBudget {
 public:
  explicit SharedBudget(std::uint64_t max_expanded_bytes)
      : budget_(max_expanded_bytes) {}

  // Counts `tensor` unless `is_counted` says that it was.
  Status add(const Tensor& tensor, bool& is_counted) {
    const std::scoped_lock lock(mutex_);
    if (!is_counted) {
      LOCKSTEP_TRY(budget_.add(tensor));
      is_counted = true;
    }
    return {};
  }

 private:
  std::mutex mutex_;
  ExpansionBudget budget_;
};

// The elements of a tensor row by row, where every type may lie: those of its
// storage if they are so, else a copy.
class RowsSource final : public internal::MadeSource {
 public:
  RowsSource(Tensor tensor, std::shared_ptr<SharedBudget> budget)
      : MadeSource(contiguous_bytes(tensor)),
        tensor_(std::move(tensor)),
        budget_(std::move(budget)) {}

  Result<ByteSpan> load() override {
    if (internal::lies_in_rows(tensor_)) {
      LOCKSTEP_ASSIGN(const ByteSpan bytes, internal::row_bytes(tensor_));
      if (is_aligned(bytes)) {
        return bytes;
      }
    }
    LOCKSTEP_TRY(budget_->add(tensor_, is_counted_));
    return MadeSource::load();
  }
  Result<ByteSpan> view(
      std::uint64_t offset,
      std::uint64_t length,
      std::vector<std::byte>& scratch) override {
    return internal::lies_in_rows(tensor_)
               ? internal::row_view(tensor_, offset, length, scratch)
               : MadeSource::view(offset, length, scratch);
  }
  Status stream(const BlockVisitor& visit) override {
    LOCKSTEP_TRY(budget_->add(tensor_, is_counted_));
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
  const std::shared_ptr<SharedBudget> budget_;
  bool is_counted_ = false; // guarded by the lock of `budget_`
};

Tensor row_by_row(
    const Tensor& tensor,
    const std::shared_ptr<SharedBudget>& budget) {
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
  result.storage->source = std::make_shared<RowsSource>(tensor, budget);
  return result;
}

} // namespace

std::vector<NamedTensor> tensors_of(const Value& root, const Limits& limits) {
  std::vector<NamedTensor> result;
  const auto budget = std::make_shared<SharedBudget>(limits.max_expanded_bytes);
  for_each_tensor(root, [&](const std::string& name, const Tensor& tensor) {
    result.push_back({.name = name, .tensor = row_by_row(tensor, budget)});
  }).value();
  return result;
}

std::vector<NamedTensor>
tensors(const std::string& path, const LoadOptions& options, FileSystem& fs) {
  const Checkpoint file = load(path, options, fs).value();
  return tensors_of(file.root, counting(options.limits, file));
}

} // namespace lockstep::ckpt
