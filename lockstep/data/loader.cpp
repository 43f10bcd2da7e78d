// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/set.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/internal/buffer_pool.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxWorkers = 1024;
constexpr std::int64_t kMaxPrefetch = 1024;
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 24;
// Batches that a training step holds while the next ones are made.
constexpr std::size_t kHeldByConsumer = 2;

[[noreturn]] void bad_option(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.loader",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

void check_range(
    std::string_view field,
    std::int64_t value,
    std::int64_t low,
    std::int64_t high) {
  if (value < low || value > high) {
    bad_option(format("{} must be {} to {}, got {}", field, low, high, value));
  }
}

std::shared_ptr<const Dataset> checked(
    std::shared_ptr<const Dataset> dataset,
    const LoaderOptions& options) {
  if (dataset == nullptr) {
    bad_option("dataset is null");
  }
  check_range("batch_size", options.batch_size, 1, kMaxBatch);
  check_range("workers", options.workers, 0, kMaxWorkers);
  check_range("prefetch", options.prefetch, 1, kMaxPrefetch);
  return dataset;
}

bool pins(const LoaderOptions& options) {
  return options.pin_memory && at::hasCUDA();
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

// A batch in memory of the pools.
struct RawBatch {
  at::DataPtr images = {};
  at::DataPtr targets = {};
  std::int64_t size = 0;
};

at::Tensor
tensor_on(at::DataPtr memory, at::IntArrayRef sizes, at::ScalarType type) {
  at::Tensor tensor = at::empty({0}, type);
  const auto bytes = c10::multiply_integers(sizes) * tensor.element_size();
  tensor.set_(
      at::Storage(
          at::Storage::use_byte_size_t(),
          static_cast<std::size_t>(bytes),
          std::move(memory),
          /*allocator=*/nullptr,
          /*resizable=*/false),
      /*storage_offset=*/0,
      sizes);
  return tensor;
}

// Place in the ring for one batch to come.
struct Slot {
  bool ready = false;
  RawBatch batch = {};
  std::exception_ptr error = {};
};

} // namespace

struct Loader::Impl {
  Impl(std::shared_ptr<const Dataset> data, const LoaderOptions& how)
      : options(how),
        dataset(checked(std::move(data), how)),
        shape(dataset->sample_shape()),
        numel(std::accumulate(
            shape.begin(),
            shape.end(),
            std::int64_t{1},
            std::multiplies<>())),
        ring(static_cast<std::size_t>(
            std::max<std::int64_t>(options.workers * options.prefetch, 1))),
        images(
            static_cast<std::uint64_t>(options.batch_size * numel) *
                sizeof(float),
            ring.size() + kHeldByConsumer,
            pins(options)),
        targets(
            static_cast<std::uint64_t>(options.batch_size) *
                sizeof(std::int64_t),
            ring.size() + kHeldByConsumer,
            pins(options)) {}

  RawBatch read(const Epoch& from, std::int64_t batch);
  [[nodiscard]] Batch to_tensors(RawBatch raw) const;
  std::optional<Batch> next_from_ring();
  void restart(std::int64_t position);
  void work(const std::stop_token& stop);

  const LoaderOptions options;
  const std::shared_ptr<const Dataset> dataset;
  const std::vector<std::int64_t> shape;
  const std::int64_t numel;

  std::mutex mutex; // guards the following, up to `images`
  std::condition_variable_any can_work;
  std::condition_variable is_ready;
  std::shared_ptr<const Epoch> epoch = std::make_shared<const Epoch>();
  std::uint64_t generation = 0; // of `ring`: counts restarts
  std::int64_t claimed = 0; // first batch that no worker has taken
  std::int64_t consumed = 0; // first batch not yet given out
  std::vector<Slot> ring; // batch b lies in slot b % size

  internal::BufferPool images;
  internal::BufferPool targets;
  std::vector<std::jthread> workers; // last: they end before the rest
};

RawBatch Loader::Impl::read(const Epoch& from, std::int64_t batch) {
  const auto& indices = from.batches[static_cast<std::size_t>(batch)];
  const std::size_t size = indices.size();
  RawBatch raw{
      .images = images.take(),
      .targets = targets.take(),
      .size = std::ssize(indices)};
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): raw memory
  dataset->read(
      indices,
      from.number,
      {reinterpret_cast<float*>(raw.images.get()),
       size * static_cast<std::size_t>(numel)},
      {reinterpret_cast<std::int64_t*>(raw.targets.get()), size});
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  return raw;
}

// Made in the consumer's thread: workers never enter LibTorch.
Batch Loader::Impl::to_tensors(RawBatch raw) const {
  std::vector<std::int64_t> sizes{raw.size};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  Batch batch;
  batch.images = tensor_on(std::move(raw.images), sizes, at::kFloat);
  if (dataset->num_classes() > 0) {
    batch.targets = tensor_on(std::move(raw.targets), {raw.size}, at::kLong);
  }
  return batch;
}

// Drops what is prepared and goes on at batch `position`. Under the mutex.
void Loader::Impl::restart(std::int64_t position) {
  ++generation;
  claimed = position;
  consumed = position;
  for (Slot& slot : ring) {
    slot = {};
  }
  can_work.notify_all();
}

void Loader::Impl::work(const std::stop_token& stop) {
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
      done.batch = read(*from, batch);
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

std::optional<Batch> Loader::Impl::next_from_ring() {
  RawBatch raw;
  {
    std::unique_lock lock(mutex);
    if (consumed >= epoch->size()) {
      return std::nullopt;
    }
    Slot& slot = ring[static_cast<std::size_t>(consumed) % ring.size()];
    is_ready.wait(lock, [&] { return slot.ready; });
    if (slot.error) {
      std::rethrow_exception(slot.error);
    }
    raw = std::move(slot.batch);
    slot = Slot{};
    ++consumed;
  }
  can_work.notify_one();
  return to_tensors(std::move(raw));
}

Loader::Loader(
    std::shared_ptr<const Dataset> dataset,
    const LoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(dataset), options)) {}

Loader::~Loader() = default;

void Loader::start_epoch(
    const std::vector<std::int64_t>& indices,
    std::int64_t epoch) {
  start_batches(
      make_batches(
          indices,
          impl_->options.batch_size,
          impl_->options.drop_last),
      epoch);
}

void Loader::start_batches(IndexBatches batches, std::int64_t epoch) {
  const std::int64_t samples = impl_->dataset->size();
  for (const auto& batch : batches) {
    check_range(
        "the size of a batch",
        std::ssize(batch),
        1,
        impl_->options.batch_size);
    for (const std::int64_t index : batch) {
      if (index < 0 || index >= samples) {
        bad_option(format(
            "index {} is outside the dataset of {} samples",
            index,
            samples));
      }
    }
  }
  auto next = std::make_shared<const Epoch>(
      Epoch{.batches = std::move(batches), .number = epoch});
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->epoch = std::move(next);
    impl_->restart(0);
  }
  // Started late, so that a loader that is only described costs nothing.
  auto& workers = impl_->workers;
  while (std::ssize(workers) < impl_->options.workers) {
    workers.emplace_back([impl = impl_.get()](const std::stop_token& stop) {
      impl->work(stop);
    });
  }
}

std::optional<Batch> Loader::next() {
  if (impl_->options.workers > 0) {
    return impl_->next_from_ring();
  }
  if (impl_->consumed >= impl_->epoch->size()) {
    return std::nullopt;
  }
  RawBatch raw = impl_->read(*impl_->epoch, impl_->consumed);
  ++impl_->consumed;
  return impl_->to_tensors(std::move(raw));
}

void Loader::skip(std::int64_t count) {
  const std::int64_t left = batches() - position();
  if (count < 0 || count > left) {
    bad_option(format("cannot skip {} batches; {} are left", count, left));
  }
  if (count > 0) {
    const std::scoped_lock lock(impl_->mutex);
    impl_->restart(impl_->consumed + count);
  }
}

std::int64_t Loader::batches() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->epoch->size();
}

std::int64_t Loader::position() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->consumed;
}

const LoaderOptions& Loader::options() const {
  return impl_->options;
}

const Dataset& Loader::dataset() const {
  return *impl_->dataset;
}

} // namespace lockstep
