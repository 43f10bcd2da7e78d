// SPDX-License-Identifier: BSD-3-Clause
//
// What a `Loader` reads: numbered samples of which it makes batches. Numbered
// images become float32 batches; samples of any other type: made_dataset.h.
// A dataset is immutable once built, so loader threads share it freely.
//   const auto data = open_dataset("fashion-mnist", dir);
//   Loader loader(data.train, {.batch_size = 64, .workers = 1});
//
// The toy dataset of the data-parallel tutorial: rows of normal numbers.
//   torch::manual_seed(0);
//   auto data = std::make_shared<RandomDataset>(5, 100);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/data/samplers.h"
#include "lockstep/tensor/structure_base.h"

#pragma GCC visibility push(default)
namespace lockstep {
struct LoaderOptions;
} // namespace lockstep

namespace lockstep::internal {

/// True if batches are to lie in pinned memory and there is a CUDA device.
bool pins(const LoaderOptions& options);
/// Errors: throws kInvalidArgument (E_DATA_OPTION).
[[noreturn]] void raise_bad_option(std::string message);
/// Errors: throws kInvalidArgument for an option out of range.
LoaderOptions checked_options(LoaderOptions options);
/// Errors: throws kInvalidArgument for a negative size.
std::int64_t checked_size(std::int64_t samples);

/// Puts a batch that was read into the consumer's variable, in its thread.
using GiveBatch = std::function<void(void* batch)>;
/// Reads samples of an epoch: in a thread of the queue, several at once.
using ReadBatch = std::function<
    GiveBatch(std::span<const std::int64_t> indices, std::int64_t epoch)>;

/// Batches of any type, made ahead of the consumer in threads of the queue's
/// own. What comes out depends on the order and the epoch only, never on the
/// number of threads.
/// Threads: one thread calls the functions.
class BatchQueue {
 public:
  /// `options` are checked.
  BatchQueue(
      ReadBatch read,
      std::int64_t samples,
      const LoaderOptions& options);
  /// Ends the threads, at any moment.
  ~BatchQueue();
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  /// As those of `Loader`.
  void start_batches(IndexBatches batches, std::int64_t epoch);
  void skip(std::int64_t count);
  [[nodiscard]] std::int64_t batches() const;
  [[nodiscard]] std::int64_t position() const;
  [[nodiscard]] const LoaderOptions& options() const;
  /// False at the end of the epoch; else gives the next batch.
  bool next(void* batch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace lockstep::internal

namespace lockstep {

/// Numbered samples that become batches of type `B`. Derive from `Dataset` for
/// images, or use `make_dataset`.
template <class B>
class BatchSource {
 public:
  using BatchType = B;

  BatchSource() = default;
  virtual ~BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  /// Units: samples.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// What a loader's threads call to read batches, several at once; it puts a
  /// `std::optional<B>` where `GiveBatch` says.
  /// Ownership: the source outlives it.
  [[nodiscard]] virtual internal::ReadBatch reader(
      const LoaderOptions& options) const = 0;
};

} // namespace lockstep

namespace lockstep {
struct Batch;
} // namespace lockstep

// A batch unpacks to images and targets.
template <>
struct std::tuple_size<lockstep::Batch>
    : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, lockstep::Batch> {
  using type = at::Tensor; // NOLINT(readability-identifier-naming): std's
};

namespace lockstep {

/// Samples that a training step takes at once.
struct Batch {
  /// Shape: [N, C, H, W] float32, or [N, ...] for other samples.
  at::Tensor images = {};
  /// Shape: [N, ...], as `Dataset::target_format` says: [N] int64 for one
  /// class each, [N, H, W] int64 for masks, [N, K] float32 for values.
  /// Undefined for a dataset without targets, and where they are no tensor.
  at::Tensor targets = {};
  /// Targets of any other type: boxes and labels, tensors by name.
  AnyStructure structure = {};

  /// Units: samples.
  [[nodiscard]] std::int64_t size() const {
    return images.defined() ? images.size(0) : 0;
  }
};

/// For `for (auto& [images, targets] : loader)`.
template <std::size_t I>
at::Tensor& get(Batch& batch) {
  return I == 0 ? batch.images : batch.targets;
}
template <std::size_t I>
const at::Tensor& get(const Batch& batch) {
  return I == 0 ? batch.images : batch.targets;
}
template <std::size_t I>
at::Tensor get(Batch&& batch) { // NOLINT(*-rvalue-reference-param-not-moved)
  return std::move(I == 0 ? batch.images : batch.targets);
}

/// A module may take a whole batch: each replica gets its part.
template <>
struct Structure<Batch>
    : Fields<&Batch::images, &Batch::targets, &Batch::structure> {};

/// What the targets of samples are.
enum class TargetKind {
  kNone,
  /// Numbers of classes, int64. Not counted: -100, in masks of up to 255
  /// classes 255.
  kClasses,
  /// float32.
  kValues,
  /// Of a type of the program's own (`Batch::structure`), which only a loader
  /// gives; `read` does not.
  kStructure
};

/// The target of one sample.
struct TargetFormat {
  TargetKind kind = TargetKind::kNone;
  /// Without the batch dimension: {} for one number, {H, W} for a mask.
  std::vector<std::int64_t> shape = {};

  /// Numbers of one target; 0 without targets, and of a structure.
  [[nodiscard]] std::int64_t numel() const;
  friend bool operator==(const TargetFormat&, const TargetFormat&) = default;
};

/// Where the targets of some samples go, one after the other: classes to
/// `classes`, values to `values`; what the format has not is empty.
struct TargetRows {
  TargetRows() = default;
  // Implicit on purpose: a vector of numbers is passed as it is.
  // NOLINTBEGIN(google-explicit-constructor)
  TargetRows(std::span<std::int64_t> numbers) : classes(numbers) {}
  TargetRows(std::vector<std::int64_t>& numbers) : classes(numbers) {}
  TargetRows(std::span<float> numbers) : values(numbers) {}
  TargetRows(std::vector<float>& numbers) : values(numbers) {}
  // NOLINTEND(google-explicit-constructor)

  std::span<std::int64_t> classes = {};
  std::span<float> values = {};
};

/// How the pixels of an image became the numbers of a sample: in one size, from
/// 0 to 1, minus `mean`, over `std`.
struct PixelFormat {
  /// {C, H, W}, before a `ResizedDataset` if there is one; {}: not known.
  std::vector<std::int64_t> shape = {};
  /// One per channel.
  std::vector<float> mean = {};
  std::vector<float> std = {};

  [[nodiscard]] bool is_known() const {
    return !shape.empty();
  }
  friend bool operator==(const PixelFormat&, const PixelFormat&) = default;
};

/// Numbered images. Threads: `read` may run in several threads at once.
class Dataset : public BatchSource<Batch> {
 public:
  /// Shape of one sample without the batch dimension: {1, 28, 28}.
  [[nodiscard]] virtual std::vector<std::int64_t> sample_shape() const = 0;
  /// Classes that targets count; 0: targets are no classes, or there are none.
  [[nodiscard]] virtual std::int64_t num_classes() const = 0;
  /// By itself: the number of one class, if there are classes.
  [[nodiscard]] virtual TargetFormat target_format() const;
  /// Names of the classes, `num_classes` of them, or of the values; empty if
  /// they have none.
  [[nodiscard]] virtual std::vector<std::string> class_names() const {
    return {};
  }
  /// By itself not known: samples need not be pixels.
  [[nodiscard]] virtual PixelFormat pixel_format() const {
    return {};
  }
  /// For messages: the file a sample is from; by itself "sample 7".
  [[nodiscard]] virtual std::string sample_name(std::int64_t index) const;

  /// Tells these samples from others in a checkpoint: a hash of their order,
  /// their targets and their files (name and size) or bytes, but not of what
  /// becomes of them when they are read. 0: not known.
  [[nodiscard]] virtual std::uint64_t digest() const {
    return 0;
  }

  /// Writes the samples `indices`, one after the other, to `images`, and their
  /// targets to `targets` (not touched without targets). Random transforms use
  /// only their seed, `epoch` and the index of the sample.
  /// Units: `images` has indices.size() * (product of sample_shape()) floats,
  /// `targets` indices.size() * target_format().numel() numbers.
  virtual void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const = 0;
  /// The targets alone, without what is random in them; by itself it reads the
  /// samples of epoch 0 for it.
  virtual void read_targets(
      std::span<const std::int64_t> indices,
      TargetRows targets) const;

  /// Errors of reading: kInvalidArgument (E_LABEL) for a target that is no
  /// class, with the sample's name, and what `read` throws.
  [[nodiscard]] internal::ReadBatch reader(
      const LoaderOptions& options) const override;
};

/// `length` rows of `size` normal numbers, without targets.
class RandomDataset : public Dataset {
 public:
  /// Draws `torch.randn(length, size)` from the default generator: the same
  /// seed gives Python's numbers, bit for bit.
  /// Errors: throws kInvalidArgument for a negative size or length.
  RandomDataset(std::int64_t size, std::int64_t length);

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::vector<std::int64_t> sample_shape() const override;
  [[nodiscard]] std::int64_t num_classes() const override;
  /// Errors: throws kInvalidArgument for an index outside the dataset.
  void read(
      std::span<const std::int64_t> indices,
      std::int64_t epoch,
      std::span<float> images,
      TargetRows targets) const override;

  [[nodiscard]] std::uint64_t digest() const override;

  /// Shape: [length, size] float32.
  [[nodiscard]] const at::Tensor& data() const {
    return data_;
  }

 private:
  at::Tensor data_;
};

} // namespace lockstep
#pragma GCC visibility pop
