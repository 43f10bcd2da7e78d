// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// The elements of a tensor row by row, where every type may lie: those of its
// storage if they are so, else a copy.
class RowsSource final : public StorageSource {
 public:
  RowsSource(Tensor tensor, std::uint64_t max_expanded_bytes)
      : tensor_(std::move(tensor)), max_expanded_bytes_(max_expanded_bytes) {}

  Result<ByteSpan> load() override {
    const std::scoped_lock lock(mutex_);
    if (contiguous_bytes(tensor_) == 0) {
      return ByteSpan(); // its view may begin behind the storage
    }
    if (!bytes_) {
      LOCKSTEP_TRY(check_expansion(tensor_, max_expanded_bytes_));
      LOCKSTEP_ASSIGN(bytes_, is_plain() ? aligned() : gathered());
    }
    return *bytes_;
  }
  Status stream(const BlockVisitor& visit) override {
    return for_each_block(tensor_, visit);
  }

 private:
  [[nodiscard]] bool is_plain() const {
    return tensor_.is_contiguous() && !tensor_.is_conj && !tensor_.is_neg;
  }

  Result<ByteSpan> aligned() {
    const std::size_t element = dtype_info(tensor_.dtype).size;
    LOCKSTEP_ASSIGN(
        const ByteSpan bytes,
        tensor_.storage->source->view(
            static_cast<std::uint64_t>(tensor_.offset) * element,
            contiguous_bytes(tensor_),
            copy_));
    const auto address = std::bit_cast<std::uintptr_t>(bytes.data());
    if (address % std::min(element, alignof(std::max_align_t)) == 0) {
      return bytes;
    }
    copy_.assign(bytes.begin(), bytes.end());
    return ByteSpan(copy_);
  }

  Result<ByteSpan> gathered() {
    copy_.clear(); // what was read before an error
    copy_.reserve(contiguous_bytes(tensor_));
    LOCKSTEP_TRY(for_each_block(tensor_, [this](ByteSpan block) {
      copy_.insert(copy_.end(), block.begin(), block.end());
      return Status();
    }));
    return ByteSpan(copy_);
  }

  const Tensor tensor_;
  const std::uint64_t max_expanded_bytes_;
  std::mutex mutex_;
  std::optional<ByteSpan> bytes_;
  std::vector<std::byte> copy_;
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
