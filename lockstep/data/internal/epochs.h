// SPDX-License-Identifier: BSD-3-Clause
//
// Which epoch a loader is in, in which order, and where.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/data/internal/batch_queue.h"
#include "lockstep/data/loader_options.h"

namespace lockstep::internal {

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
