// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/Context.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/internal/check_index.h"
#include "lockstep/data/loader.h"
#include "lockstep/tensor/internal/trace_spans.h"

namespace lockstep::internal {
namespace {

constexpr std::int64_t kMaxWorkers = 1024;
constexpr std::int64_t kMaxPrefetch = 1024;
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 24;

void check_range(
    std::string_view field,
    std::int64_t value,
    std::int64_t low,
    std::int64_t high) {
  if (value < low || value > high) {
    raise_bad_option(
        format("{} must be {} to {}, got {}", field, low, high, value));
  }
}

// What the threads work on. A new epoch is a new object, so a worker that is
// late with an old batch can neither disturb nor be disturbed.
struct Epoch {
  IndexBatches batches = {};
  std::int64_t number = 0;

  [[nodiscard]] std::int64_t size() const {
    return std::ssize(batches);
  }
};

// Place in the ring for one batch to come.
struct Slot {
  bool ready = false;
  GiveBatch give = {};
  std::exception_ptr error = {};
};

} // namespace

bool pins(const LoaderOptions& options) {
  return options.pin_memory && at::hasCUDA();
}

void raise_bad_option(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.loader",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

LoaderOptions checked_options(LoaderOptions options) {
  check_range("batch_size", options.batch_size, 1, kMaxBatch);
  check_range("workers", options.workers, 0, kMaxWorkers);
  check_range("prefetch", options.prefetch, 1, kMaxPrefetch);
  if (options.shuffle && options.sampler.is_given()) {
    raise_bad_option(
        "shuffle and a sampler both say the order: give one of them");
  }
  return options;
}

std::int64_t checked_size(std::int64_t samples) {
  if (samples < 0) {
    raise_bad_option(format("a dataset cannot have {} samples", samples));
  }
  return samples;
}

struct BatchQueue::Impl {
  Impl(ReadBatch how_to_read, std::int64_t size, const LoaderOptions& how)
      : options(how),
        read(std::move(how_to_read)),
        samples(size),
        ring(static_cast<std::size_t>(
            std::max<std::int64_t>(options.workers * options.prefetch, 1))) {}

  bool next_from_ring(void* batch);
  void restart(std::int64_t position);
  void work(const std::stop_token& stop);
  GiveBatch read_batch(const Epoch& from, std::int64_t batch) const {
    const TraceSpan span("read a batch", "loader");
    return read(from.batches[static_cast<std::size_t>(batch)], from.number);
  }

  const LoaderOptions options;
  const ReadBatch read;
  const std::int64_t samples;

  std::mutex mutex; // guards the following, up to `workers`
  std::condition_variable_any can_work;
  std::condition_variable is_ready;
  std::shared_ptr<const Epoch> epoch = std::make_shared<const Epoch>();
  std::uint64_t generation = 0; // of `ring`: counts restarts
  std::int64_t claimed = 0; // first batch that no worker has taken
  std::int64_t consumed = 0; // first batch not yet given out
  std::vector<Slot> ring; // batch b lies in slot b % size

  std::vector<std::jthread> workers; // last: they end before the rest
};

// Drops what is prepared and goes on at batch `position`. Under the mutex.
void BatchQueue::Impl::restart(std::int64_t position) {
  ++generation;
  claimed = position;
  consumed = position;
  for (Slot& slot : ring) {
    slot = {};
  }
  can_work.notify_all();
}

void BatchQueue::Impl::work(const std::stop_token& stop) {
  const auto capacity = static_cast<std::int64_t>(ring.size());
  std::unique_lock lock(mutex);
  for (;;) {
    const bool goes_on = can_work.wait(lock, stop, [&] {
      return claimed < std::min(epoch->size(), consumed + capacity);
    });
    if (!goes_on || stop.stop_requested()) {
      return;
    }
    const std::shared_ptr<const Epoch> from = epoch;
    const std::uint64_t claim_generation = generation;
    const std::int64_t batch = claimed++;
    lock.unlock();
    Slot done{.ready = true};
    try {
      done.give = read_batch(*from, batch);
    } catch (...) {
      done.error = std::current_exception();
    }
    lock.lock();
    if (claim_generation == generation) {
      ring[static_cast<std::size_t>(batch % capacity)] = std::move(done);
      if (batch == consumed) {
        is_ready.notify_one();
      }
    }
  }
}

// The slot is the consumer's until `consumed` passes it.
bool BatchQueue::Impl::next_from_ring(void* batch) {
  std::unique_lock lock(mutex);
  if (consumed >= epoch->size()) {
    return false;
  }
  Slot& slot = ring[static_cast<std::size_t>(consumed) % ring.size()];
  is_ready.wait(lock, [&] { return slot.ready; });
  lock.unlock();
  if (slot.error) {
    std::rethrow_exception(slot.error);
  }
  try {
    slot.give(batch);
  } catch (...) { // what was given in part cannot be given again
    slot.error = std::current_exception();
    throw;
  }
  lock.lock();
  slot = Slot{};
  ++consumed;
  lock.unlock();
  can_work.notify_one();
  return true;
}

BatchQueue::BatchQueue(
    ReadBatch read,
    std::int64_t samples,
    const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(read), samples, options)) {
  if (options.shuffle && samples == 0) { // as Python's DataLoader
    raise_bad_option("a dataset without samples cannot be shuffled");
  }
}

BatchQueue::~BatchQueue() = default;

void BatchQueue::start_batches(IndexBatches batches, std::int64_t epoch) {
  const std::int64_t samples = impl_->samples;
  for (const auto& batch : batches) {
    check_range(
        "the size of a batch",
        std::ssize(batch),
        1,
        impl_->options.batch_size);
    for (const std::int64_t index : batch) {
      check_index(index, samples);
    }
  }
  // Started late, so that a loader that is only described costs nothing.
  auto& workers = impl_->workers;
  while (std::ssize(workers) < impl_->options.workers) {
    workers.emplace_back([impl = impl_.get()](const std::stop_token& stop) {
      impl->work(stop);
    });
  }
  auto next = std::make_shared<const Epoch>(
      Epoch{.batches = std::move(batches), .number = epoch});
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->epoch = std::move(next);
    impl_->restart(0);
  }
}

bool BatchQueue::next(void* batch) {
  if (impl_->options.workers > 0) {
    return impl_->next_from_ring(batch);
  }
  if (impl_->consumed >= impl_->epoch->size()) {
    return false;
  }
  impl_->read_batch(*impl_->epoch, impl_->consumed)(batch);
  ++impl_->consumed;
  return true;
}

void BatchQueue::skip(std::int64_t count) {
  const std::int64_t left = batches() - position();
  if (count < 0 || count > left) {
    raise_bad_option(
        format("cannot skip {} batches; {} are left", count, left));
  }
  if (count > 0) {
    const std::scoped_lock lock(impl_->mutex);
    impl_->restart(impl_->consumed + count);
  }
}

std::int64_t BatchQueue::batches() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->epoch->size();
}

std::int64_t BatchQueue::position() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->consumed;
}

const LoaderOptions& BatchQueue::options() const {
  return impl_->options;
}

} // namespace lockstep::internal
