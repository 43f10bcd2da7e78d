// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/made_dataset.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include "lockstep/base/strings.h"
#include "lockstep/data/internal/byte_hash.h"
#include "lockstep/data/internal/check_index.h"

namespace lockstep::internal {
namespace {

// Samples of another dataset of images.
class PartDataset : public Dataset {
 public:
  PartDataset(
      std::shared_ptr<const Dataset> whole,
      std::vector<std::int64_t> indices)
      : whole_(std::move(whole)),
        indices_(checked_part(std::move(indices), whole_->size())) {}

  [[nodiscard]] std::int64_t size() const override {
    return std::ssize(indices_);
  }
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override {
    return whole_->sample_shape();
  }
  [[nodiscard]] std::int64_t num_classes() const override {
    return whole_->num_classes();
  }
  [[nodiscard]] TargetFormat target_format() const override {
    return whole_->target_format();
  }
  [[nodiscard]] std::vector<std::string> class_names() const override {
    return whole_->class_names();
  }
  [[nodiscard]] PixelFormat pixel_format() const override {
    return whole_->pixel_format();
  }
  [[nodiscard]] std::string sample_name(std::int64_t index) const override {
    return whole_->sample_name(places(std::span(&index, 1), indices_).front());
  }
  [[nodiscard]] std::uint64_t digest() const override {
    const std::uint64_t whole = whole_->digest();
    return whole == 0 ? 0
                      : hash_of(
                            indices_.data(),
                            indices_.size() * sizeof(std::int64_t),
                            whole);
  }
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override {
    whole_->read(places(indices, indices_), epoch, images, targets);
  }
  void read_targets(std::span<const std::int64_t> indices, TargetRows targets)
      const override {
    whole_->read_targets(places(indices, indices_), targets);
  }

  // As the whole reads them: with targets of any type.
  [[nodiscard]] ReadBatch reader(const LoaderOptions& options) const override {
    return part_reader(
        whole_->reader(options),
        std::make_shared<const std::vector<std::int64_t>>(indices_));
  }

  static std::vector<std::int64_t> places(
      std::span<const std::int64_t> numbers,
      std::span<const std::int64_t> indices) {
    std::vector<std::int64_t> found;
    found.reserve(numbers.size());
    for (const std::int64_t number :
         checked_part({numbers.begin(), numbers.end()}, std::ssize(indices))) {
      found.push_back(indices[static_cast<std::size_t>(number)]);
    }
    return found;
  }

 private:
  std::shared_ptr<const Dataset> whole_;
  std::vector<std::int64_t> indices_;
};

} // namespace

std::int64_t common_rows(std::span<const at::Tensor> tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.dim() == 0) {
      raise_bad_option("a tensor of samples has no rows: its first dimension");
    }
    if (tensor.size(0) != tensors.front().size(0)) {
      raise_bad_option(format(
          "tensors of one dataset have as many rows; one has {}, another {}",
          tensors.front().size(0),
          tensor.size(0)));
    }
  }
  return tensors.front().size(0);
}

at::Tensor rows_of(
    const at::Tensor& tensor,
    std::span<const std::int64_t> indices,
    bool is_pinned) {
  const at::Tensor rows =
      at::tensor(c10::IntArrayRef(indices.data(), indices.size()), at::kLong)
          .to(tensor.device());
  const at::Tensor batch = at::index_select(tensor, /*dim=*/0, rows);
  return is_pinned && batch.is_cpu() ? batch.pin_memory() : batch;
}

std::vector<std::int64_t> checked_part(
    std::vector<std::int64_t> indices,
    std::int64_t size) {
  for (const std::int64_t index : indices) {
    check_index(index, size);
  }
  return indices;
}

ReadBatch part_reader(
    ReadBatch whole,
    std::shared_ptr<const std::vector<std::int64_t>> indices) {
  return [whole = std::move(whole), indices = std::move(indices)](
             std::span<const std::int64_t> numbers,
             std::int64_t epoch) {
    return whole(PartDataset::places(numbers, *indices), epoch);
  };
}

std::shared_ptr<Dataset> part_of(
    std::shared_ptr<const Dataset> whole,
    std::vector<std::int64_t> indices) {
  return std::make_shared<PartDataset>(std::move(whole), std::move(indices));
}

} // namespace lockstep::internal
