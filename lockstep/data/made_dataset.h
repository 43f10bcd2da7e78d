// SPDX-License-Identifier: BSD-3-Clause
//
// Datasets from a function, or from a dataset of LibTorch:
//   auto data = make_dataset(100, [&](std::int64_t i) {
//     return std::tuple{image(i), mask(i), label(i)};
//   });
//   Loader loader(data, {.batch_size = 30, .shuffle = true});
//   for (auto& [images, masks, labels] : loader) { ... }
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/data/batch_source.h"
#include "lockstep/data/collate.h"

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

} // namespace lockstep
