// SPDX-License-Identifier: BSD-3-Clause
//
// What a `Loader` reads: numbered samples of which it makes batches.
#pragma once

#include <cstdint>

#include "lockstep/data/internal/batch_queue.h"

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
