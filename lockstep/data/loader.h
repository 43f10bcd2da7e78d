// SPDX-License-Identifier: BSD-3-Clause
//
// Turns an order of samples into batches, ahead of the consumer, in threads of
// its own. What comes out depends on the order and the epoch only, never on
// the number of threads.
//   Loader loader(dataset, {.batch_size = 64, .workers = 1});
//   loader.start_epoch(sampler.indices(), epoch);
//   while (auto batch = loader.next()) { step(batch->images, batch->targets); }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/data/batch_sampler.h"
#include "lockstep/data/dataset.h"

namespace lockstep {

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
};

/// Reads a dataset in batches.
/// Threads: one thread calls the functions; batches may be used and released
/// by any thread, also after the loader is gone.
class Loader {
 public:
  /// Errors: throws kInvalidArgument for a null dataset or an option out of
  /// range.
  explicit Loader(
      std::shared_ptr<const Dataset> dataset,
      const LoaderOptions& options = {});
  /// Ends the threads, at any moment.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Begins an epoch at batch 0; what is left of the epoch before is dropped.
  /// Errors: throws kInvalidArgument for an index outside the dataset.
  void start_epoch(
      const std::vector<std::int64_t>& indices,
      std::int64_t epoch);
  /// The same with batches that were put together already (Python's
  /// `batch_sampler`): each has 1 to `batch_size` samples, `drop_last` plays no
  /// part. Errors: throws kInvalidArgument for an index outside the dataset,
  /// and for a batch of another size.
  void start_batches(IndexBatches batches, std::int64_t epoch);

  /// The next batch, or nothing at the end of the epoch.
  /// Ownership: the batch owns its memory, which the loader uses again once
  /// the last tensor on it is gone.
  /// Errors: rethrows what the dataset threw for this batch; the position
  /// stays, and `skip(1)` passes over it.
  std::optional<Batch> next();

  /// Passes over `count` batches without reading them: resumes an epoch.
  /// Errors: throws kInvalidArgument if fewer are left or `count` < 0.
  void skip(std::int64_t count);

  /// Batches of this epoch; 0 before the first.
  [[nodiscard]] std::int64_t batches() const;
  /// Batches taken or skipped in this epoch.
  [[nodiscard]] std::int64_t position() const;
  [[nodiscard]] const LoaderOptions& options() const;
  [[nodiscard]] const Dataset& dataset() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace lockstep
