// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/dataset.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/set.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/buffer_pool.h"
#include "lockstep/data/internal/check_samples.h"
#include "lockstep/data/loader.h"

namespace lockstep {
namespace {

// Batches that a training step holds while the next ones are made.
constexpr std::size_t kHeldByConsumer = 2;

// A batch in memory of the pools.
struct RawBatch {
  at::DataPtr images = {};
  at::DataPtr targets = {};
  std::int64_t size = 0;
};

at::ScalarType type_of(const TargetFormat& format) {
  return format.kind == TargetKind::kValues ? at::kFloat : at::kLong;
}

at::Tensor
tensor_on(at::DataPtr memory, at::IntArrayRef sizes, at::ScalarType type) {
  at::Tensor tensor = at::empty({0}, type);
  const auto bytes = c10::multiply_integers(sizes) * tensor.element_size();
  tensor.set_(
      at::Storage(
          at::Storage::use_byte_size_t(),
          static_cast<std::size_t>(bytes),
          std::move(memory),
          /*allocator=*/nullptr,
          /*resizable=*/false),
      /*storage_offset=*/0,
      sizes);
  return tensor;
}

// Reads a dataset into memory that comes back.
class Reader {
 public:
  Reader(const Dataset& dataset, const LoaderOptions& options)
      : dataset_(dataset),
        format_(dataset.target_format()),
        shape_(dataset.sample_shape()),
        numel_(std::accumulate(
            shape_.begin(),
            shape_.end(),
            std::int64_t{1},
            std::multiplies<>())),
        images_(batches_of(options), internal::pins(options)),
        targets_(batches_of(options), internal::pins(options)) {}

  RawBatch read(std::span<const std::int64_t> indices, std::int64_t epoch);
  [[nodiscard]] TargetRows rows_in(void* memory, std::size_t samples) const;
  // Made in the consumer's thread: workers never enter LibTorch.
  [[nodiscard]] Batch to_tensors(RawBatch raw) const;

 private:
  static std::size_t batches_of(const LoaderOptions& options) {
    const std::int64_t ahead = options.workers * options.prefetch;
    return static_cast<std::size_t>(std::max<std::int64_t>(ahead, 1)) +
           kHeldByConsumer;
  }

  const Dataset& dataset_;
  TargetFormat format_;
  std::vector<std::int64_t> shape_;
  std::int64_t numel_;
  internal::BufferPool images_;
  internal::BufferPool targets_;
};

TargetRows Reader::rows_in(void* memory, std::size_t samples) const {
  const std::size_t count = samples * static_cast<std::size_t>(format_.numel());
  return format_.kind == TargetKind::kValues
             ? TargetRows(std::span(static_cast<float*>(memory), count))
             : TargetRows(std::span(static_cast<std::int64_t*>(memory), count));
}

RawBatch Reader::read(
    std::span<const std::int64_t> indices,
    std::int64_t epoch) {
  const std::size_t size = indices.size();
  RawBatch raw{
      .images =
          images_.take(size * static_cast<std::size_t>(numel_) * sizeof(float)),
      .targets = targets_.take(
          size * static_cast<std::size_t>(format_.numel()) *
          c10::elementSize(type_of(format_))),
      .size = std::ssize(indices)};
  const TargetRows rows = rows_in(raw.targets.get(), size);
  dataset_.read(
      indices,
      epoch,
      {static_cast<float*>(raw.images.get()),
       size * static_cast<std::size_t>(numel_)},
      rows);
  if (format_.kind == TargetKind::kClasses) {
    internal::check_classes(dataset_, indices, rows.classes);
  }
  return raw;
}

Batch Reader::to_tensors(RawBatch raw) const {
  std::vector<std::int64_t> sizes{raw.size};
  sizes.insert(sizes.end(), shape_.begin(), shape_.end());
  Batch batch;
  batch.images = tensor_on(std::move(raw.images), sizes, at::kFloat);
  if (format_.kind == TargetKind::kClasses ||
      format_.kind == TargetKind::kValues) {
    sizes.assign({raw.size});
    sizes.insert(sizes.end(), format_.shape.begin(), format_.shape.end());
    batch.targets = tensor_on(std::move(raw.targets), sizes, type_of(format_));
  }
  return batch;
}

} // namespace

std::int64_t TargetFormat::numel() const {
  return kind == TargetKind::kClasses || kind == TargetKind::kValues
             ? c10::multiply_integers(shape)
             : 0;
}

TargetFormat Dataset::target_format() const {
  return {.kind = num_classes() > 0 ? TargetKind::kClasses : TargetKind::kNone};
}

std::string Dataset::sample_name(std::int64_t index) const {
  return format("sample {}", index);
}

void Dataset::read_targets(
    std::span<const std::int64_t> indices,
    TargetRows targets) const {
  const auto numel =
      static_cast<std::size_t>(c10::multiply_integers(sample_shape()));
  std::vector<float> images(indices.size() * numel);
  read(indices, /*epoch=*/0, images, targets);
}

internal::ReadBatch Dataset::reader(const LoaderOptions& options) const {
  const auto reader = std::make_shared<Reader>(*this, options);
  return [reader](std::span<const std::int64_t> indices, std::int64_t epoch) {
    const auto raw = std::make_shared<RawBatch>(reader->read(indices, epoch));
    return internal::GiveBatch([reader, raw](void* batch) {
      *static_cast<std::optional<Batch>*>(batch) =
          reader->to_tensors(std::move(*raw));
    });
  };
}

} // namespace lockstep
