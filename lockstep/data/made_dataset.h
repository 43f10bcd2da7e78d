// SPDX-License-Identifier: BSD-3-Clause
//
// Datasets from a function, from tensors, from a dataset of LibTorch, or from
// some samples of another:
//   auto data = make_dataset(100, [&](std::int64_t i) {
//     return std::tuple{image(i), mask(i), label(i)};
//   });
//   Loader loader(data, {.batch_size = 30, .shuffle = true});
//   for (auto& [images, masks, labels] : loader) { ... }
//   auto rows = make_dataset(inputs, targets); // tensors of 100 rows
//   auto first = subset(rows, std::views::iota(0, 80));
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/data/collate.h"
#include "lockstep/data/dataset.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// Samples that a function gives.
template <class Sample>
class MadeDataset : public BatchSource<Collated<Sample>> {
 public:
  using Get = std::function<Sample(std::int64_t index)>;

  /// Errors: throws kInvalidArgument for a negative size.
  MadeDataset(std::int64_t size, Get get)
      : size_(internal::checked_size(size)), get_(std::move(get)) {}

  [[nodiscard]] std::int64_t size() const override {
    return size_;
  }
  [[nodiscard]] Sample get(std::int64_t index) const {
    return get_(index);
  }
  [[nodiscard]] internal::ReadBatch reader(
      const LoaderOptions& options) const override;

 private:
  std::int64_t size_;
  Get get_;
};

template <class Sample>
internal::ReadBatch MadeDataset<Sample>::reader(
    const LoaderOptions& options) const {
  const bool is_pinned = internal::pins(options);
  return [this, is_pinned](
             std::span<const std::int64_t> indices,
             std::int64_t /*epoch*/) -> internal::GiveBatch {
    std::deque<Sample> samples; // a vector of bool has no elements
    for (const std::int64_t index : indices) {
      samples.push_back(get_(index));
    }
    std::vector<const Sample*> pointers;
    pointers.reserve(samples.size());
    for (const Sample& sample : samples) {
      pointers.push_back(&sample);
    }
    auto batch =
        std::make_shared<Collated<Sample>>(Collate<Sample>::of(pointers));
    if (is_pinned) {
      structure::visit_tensors(*batch, [](at::Tensor& tensor) {
        tensor = tensor.pin_memory();
      });
    }
    return [batch](void* to) {
      *static_cast<std::optional<Collated<Sample>>*>(to) = std::move(*batch);
    };
  };
}

/// `size` samples; `get(i)` gives sample `i`: a tensor, a number, a text, or a
/// tuple, map, vector or struct of these. How they become a batch: collate.h.
/// Threads: loaders with several workers call `get` in all of them. Random
/// numbers from the default generator come in the order of the threads: draw
/// them from a generator that `i` seeds.
/// Errors: `Loader::next` rethrows what `get` throws.
template <class F>
  requires std::invocable<F&, std::int64_t>
auto make_dataset(std::int64_t size, F get) {
  using Sample = std::decay_t<std::invoke_result_t<F&, std::int64_t>>;
  return std::make_shared<MadeDataset<Sample>>(size, std::move(get));
}

/// The samples of a dataset of LibTorch, or of any type with `get(index)` and
/// `size()`. Ownership: owns a copy.
template <class D>
  requires requires(D& data) {
    data.get(std::size_t());
    data.size();
  }
auto make_dataset(D data) {
  const auto kept = std::make_shared<D>(std::move(data));
  std::int64_t size = 0;
  if constexpr (requires { kept->size().value(); }) {
    size = static_cast<std::int64_t>(kept->size().value());
  } else {
    size = static_cast<std::int64_t>(kept->size());
  }
  return make_dataset(size, [kept](std::int64_t index) {
    return kept->get(static_cast<std::size_t>(index));
  });
}

namespace internal {

/// Rows that all tensors have. Errors: throws kInvalidArgument for tensors of
/// different numbers of rows, and for one without dimensions.
std::int64_t common_rows(std::span<const at::Tensor> tensors);
/// `tensor[indices]`.
at::Tensor rows_of(
    const at::Tensor& tensor,
    std::span<const std::int64_t> indices,
    bool is_pinned);
/// Errors: throws kInvalidArgument for an index outside `size` samples.
std::vector<std::int64_t> checked_part(
    std::vector<std::int64_t> indices,
    std::int64_t size);
/// Reads `indices[i]` where sample i is asked for.
ReadBatch part_reader(
    ReadBatch whole,
    std::shared_ptr<const std::vector<std::int64_t>> indices);
/// Errors: as `checked_part`.
std::shared_ptr<Dataset> part_of(
    std::shared_ptr<const Dataset> whole,
    std::vector<std::int64_t> indices);

/// A batch as a trainer takes it: floating images as float32, targets as int64
/// or float32.
Batch to_batch(Batch batch);
inline Batch to_batch(at::Tensor images) {
  return to_batch(Batch{.images = std::move(images)});
}
inline Batch to_batch(std::tuple<at::Tensor, at::Tensor> batch) {
  auto& [images, targets] = batch;
  return to_batch(
      Batch{.images = std::move(images), .targets = std::move(targets)});
}
/// Targets of any other type; several become a tuple.
template <class First, class... More>
  requires(
      (kHasTensors<First> || ... || kHasTensors<More>) &&
      !(sizeof...(More) == 0 && std::same_as<First, at::Tensor>))
Batch to_batch(std::tuple<at::Tensor, First, More...> batch) {
  return std::apply(
      [](at::Tensor& images, First& first, More&... more) {
        Batch made{.images = std::move(images)};
        if constexpr (sizeof...(More) == 0) {
          made.structure = AnyStructure(std::move(first));
        } else {
          made.structure =
              AnyStructure(std::tuple{std::move(first), std::move(more)...});
        }
        return to_batch(std::move(made));
      },
      batch);
}

template <class First, class Second>
  requires requires(std::tuple<First, Second> batch) {
    to_batch(std::move(batch));
  }
Batch to_batch(std::pair<First, Second> batch) {
  return to_batch(std::tuple{std::move(batch.first), std::move(batch.second)});
}

template <class B>
concept MakesBatch = requires(B batch) { to_batch(std::move(batch)); };

/// What `as_dataset` has forgotten of a source.
struct AnySource {
  std::int64_t size = 0;
  /// As `BatchSource::reader`; gives batches.
  std::function<ReadBatch(const LoaderOptions& options)> reader = {};
};

} // namespace internal

/// What samples do not tell.
struct AsDatasetOptions {
  /// Of targets that are numbers of classes.
  std::int64_t num_classes = 0;
  /// Empty, or one for each class.
  std::vector<std::string> class_names = {};
};

namespace internal {

std::shared_ptr<Dataset> dataset_of(
    AnySource source,
    const AsDatasetOptions& options);

} // namespace internal

/// The samples of `source` for a `Trainer`: images, or tuples of an image and
/// its target. Targets that are tensors or numbers are classes if they are
/// whole, else values; the format is that of sample 0, which is read here.
/// Targets of any other type with tensors in it are the business of the
/// program's `Task`; several become a tuple.
///   auto data = as_dataset(make_dataset(inputs, targets));
/// Ownership: shares `source`. Errors: throws kInvalidArgument for a source
/// without samples, and for names of another number than the classes; what
/// reading throws.
template <class D>
  requires requires { typename D::BatchType; }
std::shared_ptr<Dataset> as_dataset(
    std::shared_ptr<D> source,
    const AsDatasetOptions& options = {}) {
  using B = typename D::BatchType;
  static_assert(
      internal::MakesBatch<B>,
      "a sample of as_dataset is std::tuple{input, target}, a pair, or a tuple "
      "with more targets: one tensor for the model, and targets of any type "
      "with tensors in it; a model of several inputs is trained by a loop over "
      "a Loader");
  const std::int64_t size = source->size();
  auto reader = [source = std::move(source)](const LoaderOptions& loader) {
    return internal::ReadBatch([source, read = source->reader(loader)](
                                   std::span<const std::int64_t> indices,
                                   std::int64_t epoch) {
      const internal::GiveBatch give = read(indices, epoch);
      return internal::GiveBatch([give](void* to) {
        std::optional<B> batch;
        give(&batch);
        *static_cast<std::optional<Batch>*>(to) =
            internal::to_batch(*std::move(batch));
      });
    });
  };
  return internal::dataset_of({size, std::move(reader)}, options);
}

/// Rows of one or more tensors, as those of Python's `TensorDataset`. A batch
/// is a tensor, or a tuple of as many tensors.
template <std::size_t N>
class TensorDataset
    : public BatchSource<std::conditional_t<
          N == 1,
          at::Tensor,
          decltype(std::tuple_cat(std::array<at::Tensor, N>()))>> {
 public:
  using Tensors = std::array<at::Tensor, N>;

  /// Ownership: shares the tensors. Errors: throws kInvalidArgument for tensors
  /// of different numbers of rows, and for one without dimensions.
  explicit TensorDataset(Tensors tensors)
      : rows_(internal::common_rows(tensors)), tensors_(std::move(tensors)) {}

  [[nodiscard]] std::int64_t size() const override {
    return rows_;
  }
  [[nodiscard]] const Tensors& tensors() const {
    return tensors_;
  }
  [[nodiscard]] internal::ReadBatch reader(
      const LoaderOptions& options) const override {
    return [this, is_pinned = internal::pins(options)](
               std::span<const std::int64_t> indices,
               std::int64_t /*epoch*/) -> internal::GiveBatch {
      Tensors batch;
      for (std::size_t i = 0; i < N; ++i) {
        batch[i] = internal::rows_of(tensors_[i], indices, is_pinned);
      }
      return [batch](void* to) {
        using Whole = typename TensorDataset::BatchType;
        auto& given = *static_cast<std::optional<Whole>*>(to);
        if constexpr (N == 1) {
          given = batch[0];
        } else {
          given = std::tuple_cat(batch);
        }
      };
    };
  }

 private:
  std::int64_t rows_;
  Tensors tensors_;
};

/// Sample i is row i of each tensor.
/// Errors: as `TensorDataset`.
template <std::same_as<at::Tensor>... More>
auto make_dataset(at::Tensor first, More... more) {
  using Data = TensorDataset<1 + sizeof...(More)>;
  return std::make_shared<Data>(
      typename Data::Tensors{std::move(first), std::move(more)...});
}

/// Some samples of a dataset whose batches are of type `B`.
template <class B>
class Subset : public BatchSource<B> {
 public:
  /// Errors: as `subset`.
  Subset(
      std::shared_ptr<const BatchSource<B>> whole,
      std::vector<std::int64_t> indices)
      : whole_(std::move(whole)),
        indices_(std::make_shared<const std::vector<std::int64_t>>(
            internal::checked_part(std::move(indices), whole_->size()))) {}

  [[nodiscard]] std::int64_t size() const override {
    return std::ssize(*indices_);
  }
  [[nodiscard]] internal::ReadBatch reader(
      const LoaderOptions& options) const override {
    return internal::part_reader(whole_->reader(options), indices_);
  }

 private:
  std::shared_ptr<const BatchSource<B>> whole_;
  std::shared_ptr<const std::vector<std::int64_t>> indices_;
};

/// The samples `indices` of `data` in this order, each as often as it is there,
/// as Python's `Subset`. Of a `Dataset` it is a `Dataset`, whose random
/// transforms are those of the sample in `data`.
/// Ownership: shares `data`. Errors: throws kInvalidArgument for an index
/// outside.
template <class D, std::ranges::input_range Indices>
  requires std::integral<std::ranges::range_value_t<Indices>>
auto subset(std::shared_ptr<D> data, Indices&& indices) {
  std::vector<std::int64_t> list;
  std::ranges::transform(indices, std::back_inserter(list), [](auto index) {
    return static_cast<std::int64_t>(index);
  });
  if constexpr (std::derived_from<D, Dataset>) {
    return internal::part_of(std::move(data), std::move(list));
  } else {
    return std::make_shared<Subset<typename D::BatchType>>(
        std::move(data),
        std::move(list));
  }
}

} // namespace lockstep
#pragma GCC visibility pop
