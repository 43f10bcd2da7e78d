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
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/data/batch_source.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/loader_options.h"
#include "lockstep/data/samplers.h"

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
