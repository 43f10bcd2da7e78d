// SPDX-License-Identifier: BSD-3-Clause
//
// Turns numbered samples into batches, ahead of the consumer, in threads of its
// own. What comes out depends on the order and the epoch only, never on the
// number of threads.
//   Loader loader(dataset, {.batch_size = 30, .shuffle = true});
//   for (int epoch = 0; epoch < 3; ++epoch) {
//     for (auto& [images, targets] : loader) { step(images, targets); }
//   }
// Each `for` is the next epoch, in the next order. Or, by hand:
//   loader.start_epoch(sampler.indices(), epoch);
//   while (auto batch = loader.next()) { step(batch->images, batch->targets); }
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/samplers.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// The order of the samples in each epoch: what a sampler, or a function of the
/// epoch, says.
///   Loader loader(data, {.sampler = DistributedSampler(1000)});
///   Loader loader(data, {.sampler = [](std::int64_t epoch) { ... }});
class SampleOrder {
 public:
  using Indices = std::vector<std::int64_t>;

  /// The loader's own: 0, 1, 2, ..., or shuffled.
  SampleOrder() = default;
  /// A sampler with `indices()`, and `set_epoch(e)` if the order depends on the
  /// epoch; one with `next_epoch()`, which draws an order each time; or what
  /// gives the order when it is called with the epoch.
  /// Ownership: a copy; the order is that of a `shared_ptr`'s sampler, too.
  template <class Sampler>
    requires(!std::is_same_v<std::remove_cvref_t<Sampler>, SampleOrder>)
  // NOLINTNEXTLINE(google-explicit-constructor): stands for any sampler
  SampleOrder(Sampler sampler)
      : draws_(has_next_epoch<Sampler>()),
        of_epoch_([sampler = std::make_shared<Sampler>(std::move(sampler))](
                      std::int64_t epoch) { return order(*sampler, epoch); }) {}

  /// True if the sampler draws its order anew each time, from the default
  /// generator: one with `next_epoch()`.
  [[nodiscard]] bool draws() const {
    return draws_;
  }
  [[nodiscard]] bool is_given() const {
    return of_epoch_ != nullptr;
  }
  [[nodiscard]] Indices of_epoch(std::int64_t epoch) const {
    return of_epoch_(epoch);
  }

 private:
  template <class Sampler>
  static Indices order(Sampler& sampler, std::int64_t epoch) {
    using Own = std::remove_const_t<Sampler>;
    static_assert(
        !std::is_const_v<Sampler> ||
            !requires(Own& own) { own.set_epoch(epoch); },
        "a pointer to a const sampler cannot be told the epoch");
    if constexpr (requires { sampler.indices(); }) {
      if constexpr (requires { sampler.set_epoch(epoch); }) {
        sampler.set_epoch(epoch);
      }
      return sampler.indices();
    } else if constexpr (requires { sampler.next_epoch(); }) {
      return sampler.next_epoch();
    } else if constexpr (requires { sampler(epoch); }) {
      return sampler(epoch);
    } else {
      return order(*sampler, epoch);
    }
  }
  template <class Sampler>
  static consteval bool has_next_epoch() {
    return requires(Sampler& sampler) { sampler.next_epoch(); } ||
           requires(Sampler& sampler) { sampler->next_epoch(); };
  }

  bool draws_ = false;
  std::function<Indices(std::int64_t)> of_epoch_ = {};
};

/// Where a loader is: enough to go on there in another process.
struct LoaderState {
  /// From 0; -1 before the first.
  std::int64_t epoch = -1;
  /// Samples of the epoch that were given out.
  std::int64_t samples = 0;
  /// Of the shuffled order.
  std::int64_t seed = 0;

  friend bool operator==(const LoaderState&, const LoaderState&) = default;
};

/// How batches are made.
struct LoaderOptions {
  std::int64_t batch_size = 1;
  /// Threads that prepare batches; 0 prepares each one inside `next`.
  std::int64_t workers = 0;
  /// Batches prepared ahead, per worker (Python's `prefetch_factor`).
  std::int64_t prefetch = 2;
  /// Leaves out the last batch if it is smaller.
  bool drop_last = false;
  /// Batches lie in pinned memory, from which `to(device, non_blocking)` copies
  /// while the host goes on. Without a CUDA device as false.
  bool pin_memory = false;
  /// For `begin`: each epoch has another order, from the default generator, as
  /// in Python. Not with a `sampler`, nor without samples.
  bool shuffle = false;
  /// For `begin`: the order of one's own.
  SampleOrder sampler = {};
};

} // namespace lockstep

namespace lockstep::internal {

/// Which epoch a loader is in, in which order, and where.
/// Threads: one thread calls the functions.
class Epochs {
 public:
  /// Ownership: `queue` outlives it.
  Epochs(BatchQueue& queue, std::int64_t samples)
      : queue_(queue), samples_(samples) {}

  /// See `Loader`.
  void begin();
  void start(const std::vector<std::int64_t>& indices, std::int64_t epoch);
  void start_batches(IndexBatches batches, std::int64_t epoch);
  [[nodiscard]] std::int64_t epoch() const {
    return epoch_;
  }
  [[nodiscard]] LoaderState state() const;
  void resume(const LoaderState& state);

 private:
  [[nodiscard]] std::vector<std::int64_t> order_of(
      std::int64_t epoch,
      std::int64_t seed) const;
  void start_at(
      std::vector<std::int64_t> order,
      std::int64_t epoch,
      std::int64_t first);

  BatchQueue& queue_;
  std::int64_t samples_;
  std::int64_t epoch_ = -1;
  std::int64_t seed_ = 0;
  // Samples of the epoch, and those that came before what the queue was given.
  std::int64_t size_ = 0;
  std::int64_t before_ = 0;
  // The options do not say the order.
  bool is_by_hand_ = false;
  bool is_resumed_ = false;
};

} // namespace lockstep::internal

namespace lockstep {

namespace internal {

/// Errors: throws kInvalidArgument for none.
template <class S>
std::shared_ptr<const S> checked_source(std::shared_ptr<const S> source) {
  if (source == nullptr) {
    raise_bad_option("dataset is null");
  }
  return source;
}

} // namespace internal

/// Reads samples in batches of type `B`.
/// Threads: one thread calls the functions; batches may be used and released
/// by any thread, also after the loader is gone.
template <class B>
class Loader {
 public:
  /// Goes through the batches that are left of an epoch.
  class Iterator {
   public:
    // NOLINTBEGIN(readability-identifier-naming): the standard's names
    using iterator_concept = std::input_iterator_tag;
    using value_type = B;
    using difference_type = std::ptrdiff_t;
    // NOLINTEND(readability-identifier-naming)

    explicit Iterator(Loader& loader)
        : loader_(&loader), batch_(loader.next()) {}
    B& operator*() const {
      // NOLINTNEXTLINE(bugprone-unchecked-optional-access): not at the end
      return *batch_;
    }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    void operator++(int) {
      ++*this;
    }
    friend bool operator==(
        const Iterator& it,
        std::default_sentinel_t /*end*/) {
      return !it.batch_;
    }

   private:
    Loader* loader_;
    mutable std::optional<B> batch_;
  };

  /// Errors: throws kInvalidArgument for no dataset or an option out of range.
  explicit Loader(
      std::shared_ptr<const BatchSource<B>> dataset,
      const LoaderOptions& options = {})
      : dataset_(internal::checked_source(std::move(dataset))),
        queue_(
            dataset_->reader(internal::checked_options(options)),
            dataset_->size(),
            options),
        epochs_(queue_, dataset_->size()) {}

  /// Begins the next epoch, 0 at first, in the order that the options say; or
  /// the one that `resume` began.
  /// Errors: as `start_epoch` and `next`.
  Iterator begin() {
    epochs_.begin();
    return Iterator(*this);
  }
  [[nodiscard]] std::default_sentinel_t end() const {
    return {};
  }
  /// The epoch of `begin`, from 0; -1 before the first.
  [[nodiscard]] std::int64_t epoch() const {
    return epochs_.epoch();
  }
  /// Where the epoch is: after the batches that were taken so far.
  /// Errors: throws kUnsupported after `start_epoch` and `start_batches`.
  [[nodiscard]] LoaderState state() const {
    return epochs_.state();
  }
  /// The next `begin` goes on there, at a sample, also with another batch size
  /// or number of workers; after a whole epoch it begins the next.
  /// Errors: throws kInvalidArgument for a state of another dataset,
  /// kUnsupported for a sampler with `next_epoch()`, whose order is gone.
  void resume(const LoaderState& state) {
    epochs_.resume(state);
  }

  /// Begins an epoch at batch 0; what is left of the epoch before is dropped.
  /// Errors: throws kInvalidArgument for an index outside the dataset.
  void start_epoch(
      const std::vector<std::int64_t>& indices,
      std::int64_t epoch) {
    epochs_.start(indices, epoch);
  }
  /// The same with batches that were put together already (Python's
  /// `batch_sampler`): each has 1 to `batch_size` samples, `drop_last` plays no
  /// part. Errors: throws kInvalidArgument for an index outside the dataset,
  /// and for a batch of another size.
  void start_batches(IndexBatches batches, std::int64_t epoch) {
    epochs_.start_batches(std::move(batches), epoch);
  }

  /// The next batch, or nothing at the end of the epoch.
  /// Ownership: the batch owns its memory, which the loader uses again once
  /// the last tensor on it is gone.
  /// Errors: rethrows what the dataset threw for this batch; the position
  /// stays, and `skip(1)` passes over it.
  std::optional<B> next() {
    std::optional<B> batch;
    queue_.next(&batch);
    return batch;
  }

  /// Passes over `count` batches without reading them: resumes an epoch.
  /// Errors: throws kInvalidArgument if fewer are left or `count` < 0.
  void skip(std::int64_t count) {
    queue_.skip(count);
  }
  /// Batches of this epoch; 0 before the first.
  [[nodiscard]] std::int64_t batches() const {
    return queue_.batches();
  }
  /// Batches taken or skipped in this epoch.
  [[nodiscard]] std::int64_t position() const {
    return queue_.position();
  }
  [[nodiscard]] const LoaderOptions& options() const {
    return queue_.options();
  }
  [[nodiscard]] const BatchSource<B>& dataset() const {
    return *dataset_;
  }

 private:
  std::shared_ptr<const BatchSource<B>> dataset_;
  internal::BatchQueue queue_; // reads from the dataset
  internal::Epochs epochs_;
};

template <class D>
Loader(std::shared_ptr<D>) -> Loader<typename D::BatchType>;
template <class D>
Loader(std::shared_ptr<D>, LoaderOptions) -> Loader<typename D::BatchType>;

} // namespace lockstep
#pragma GCC visibility pop
