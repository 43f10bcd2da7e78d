// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/check_index.h"
#include "lockstep/data/internal/check_samples.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/made_dataset.h"

namespace lockstep::internal {
namespace {

[[noreturn]] void refuse(std::string message, std::string hint = {}) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.as_dataset",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_DATA_OPTION"});
}

TargetFormat format_of(const Batch& batch) {
  const at::Tensor& targets = batch.targets;
  if (!targets.defined()) {
    return {
        .kind = batch.structure.is_empty() ? TargetKind::kNone
                                           : TargetKind::kStructure};
  }
  return {
      .kind = targets.is_floating_point() ? TargetKind::kValues
                                          : TargetKind::kClasses,
      .shape = targets.sizes().slice(1).vec()};
}

// `tensor` is contiguous.
template <class T>
std::span<const T> span_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<T>(), static_cast<std::size_t>(tensor.numel())};
}

template <class T>
void copy_rows(const at::Tensor& from, std::span<T> to) {
  const at::Tensor rows = from.cpu().contiguous();
  LOCKSTEP_CHECK(static_cast<std::size_t>(rows.numel()) == to.size());
  std::ranges::copy(span_of<T>(rows), to.begin());
}

// Batches of any source.
class SourceDataset final : public Dataset {
 public:
  SourceDataset(AnySource source, const AsDatasetOptions& options)
      : source_(std::move(source)), options_(options) {
    if (source_.size == 0) {
      refuse("the dataset has no samples, so their format is not known");
    }
    const std::int64_t first = 0;
    const Batch sample = batch_of({&first, 1}, /*epoch=*/0);
    shape_ = sample.images.sizes().slice(1).vec();
    target_ = format_of(sample);
    const auto names = std::ssize(options_.class_names);
    if (names != 0 && names != options_.num_classes) {
      refuse(format(
          "expected {} names of classes, got {}",
          options_.num_classes,
          names));
    }
    if (options_.num_classes > 0 && target_.kind != TargetKind::kClasses) {
      refuse(
          "the targets are no numbers of classes: they are not whole",
          "leave .num_classes out, or give the targets as int64");
    }
  }

  [[nodiscard]] std::int64_t size() const override {
    return source_.size;
  }
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override {
    return shape_;
  }
  [[nodiscard]] std::int64_t num_classes() const override {
    return options_.num_classes;
  }
  [[nodiscard]] TargetFormat target_format() const override {
    return target_;
  }
  [[nodiscard]] std::vector<std::string> class_names() const override {
    return options_.class_names;
  }

  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override {
    for (const std::int64_t index : indices) {
      check_index(index, size());
    }
    const Batch batch = batch_of(indices, epoch);
    check(batch, indices);
    copy_rows<float>(batch.images, images);
    if (target_.kind == TargetKind::kClasses) {
      copy_rows<std::int64_t>(batch.targets, targets.classes);
    } else if (target_.kind == TargetKind::kValues) {
      copy_rows<float>(batch.targets, targets.values);
    }
  }

  [[nodiscard]] ReadBatch reader(const LoaderOptions& options) const override {
    return [this, read = source_.reader(options)](
               std::span<const std::int64_t> indices,
               std::int64_t epoch) -> GiveBatch {
      const auto batch = std::make_shared<Batch>(taken(read(indices, epoch)));
      check(*batch, indices);
      return [batch](void* to) {
        *static_cast<std::optional<Batch>*>(to) = std::move(*batch);
      };
    };
  }

 private:
  static Batch taken(const GiveBatch& give) {
    std::optional<Batch> batch;
    give(&batch);
    return std::move(batch).value_or(Batch());
  }

  [[nodiscard]] Batch batch_of(
      std::span<const std::int64_t> indices,
      std::int64_t epoch) const {
    const LoaderOptions options{.batch_size = std::ssize(indices)};
    return taken(source_.reader(options)(indices, epoch));
  }

  // That all samples are as the first one, and their classes are some.
  void check(const Batch& batch, std::span<const std::int64_t> samples) const {
    if (batch.images.sizes().slice(1) != at::IntArrayRef(shape_) ||
        format_of(batch) != target_) {
      refuse(format(
          "the samples from number {} on are not as sample 0; expected images "
          "{} and targets {}, got {} and {}",
          samples.front(),
          c10::str(at::IntArrayRef(shape_)),
          c10::str(at::IntArrayRef(target_.shape)),
          c10::str(batch.images.sizes().slice(1)),
          batch.targets.defined() ? c10::str(batch.targets.sizes().slice(1))
                                  : std::string("none")));
    }
    if (target_.kind == TargetKind::kClasses) {
      const at::Tensor classes = batch.targets.cpu().contiguous();
      check_classes(*this, samples, span_of<std::int64_t>(classes));
    }
  }

  AnySource source_;
  AsDatasetOptions options_;
  std::vector<std::int64_t> shape_;
  TargetFormat target_;
};

} // namespace

Batch to_batch(Batch batch) {
  batch.images = batch.images.to(at::kFloat);
  if (batch.targets.defined()) {
    batch.targets = batch.targets.to(
        batch.targets.is_floating_point() ? at::kFloat : at::kLong);
  }
  return batch;
}

std::shared_ptr<Dataset> dataset_of(
    AnySource source,
    const AsDatasetOptions& options) {
  return std::make_shared<SourceDataset>(std::move(source), options);
}

} // namespace lockstep::internal
