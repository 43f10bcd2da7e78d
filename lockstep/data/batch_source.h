// SPDX-License-Identifier: BSD-3-Clause
//
// What a `Loader` reads: numbered samples of which it makes batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "lockstep/data/samplers.h"

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
