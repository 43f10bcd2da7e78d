// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/micro_batches.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "lockstep/base/error.h"
#include "lockstep/train/state_parts.h"
#include "lockstep/train/step/memory_use.h"

namespace lockstep::train {

void MicroBatches::begin_step() {
  if (!is_on_) {
    return;
  }
  const at::NoGradGuard no_grad;
  buffers_.clear();
  for (const at::Tensor& buffer : setup_.model.module().buffers()) {
    buffers_.push_back(buffer.clone());
  }
  ValueBuilder builder;
  generators_ = generator_part(setup_.devices).save(builder);
  used_bytes_ = used_of_devices(setup_.devices);
}

bool MicroBatches::repeats(
    const std::exception_ptr& error,
    std::int64_t most_parts) {
  const bool may_repeat = is_on_ && error != nullptr && count_ < most_parts &&
                          is_out_of_memory(error);
  std::array<double, 2> ranks{
      may_repeat ? 1.0 : 0.0,
      error != nullptr && !may_repeat ? 1.0 : 0.0};
  if (is_on_) {
    setup_.group.sum(ranks);
  }
  const auto [repeating, ending] = ranks;
  if (error != nullptr && !may_repeat) {
    std::rethrow_exception(error);
  }
  if (ending > 0) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = "train.step",
         .message = "another rank could not make this step",
         .hint = "its own error says why",
         .detail = "E_OTHER_RANK"});
  }
  if (repeating == 0) {
    return false;
  }
  count_ *= 2;
  undo_step();
  return true;
}

void MicroBatches::undo_step() {
  const at::NoGradGuard no_grad;
  setup_.strategy->optimizer().zero_grad();
  const std::vector<at::Tensor> buffers = setup_.model.module().buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].copy_(buffers_[i]);
  }
  generator_part(setup_.devices).load(generators_);
  await_memory();
  if (const c10::Device first = setup_.devices.front(); !first.is_cpu()) {
    c10::getDeviceAllocator(first.type())->emptyCache();
  }
}

// The threads of other devices let go of what the failed pass had a moment
// later; before that smaller parts might not fit either.
void MicroBatches::await_memory() const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{1};
  // What stays as long is a library's workspace.
  constexpr std::chrono::milliseconds kLongest{200};
  std::vector<double> used = used_of_devices(setup_.devices);
  auto end = Clock::now() + kLongest;
  while (!std::ranges::equal(used, used_bytes_, std::ranges::less_equal()) &&
         Clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    std::vector<double> now = used_of_devices(setup_.devices);
    if (now != used) {
      used = std::move(now);
      end = Clock::now() + kLongest;
    }
  }
}

std::vector<Batch> MicroBatches::parts_of(const Batch& batch) const {
  const std::int64_t size = batch.size();
  const std::int64_t count = std::min(count_, size);
  if (count <= 1) {
    return {batch};
  }
  std::vector<Batch> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = size * i / count;
    const std::int64_t length = size * (i + 1) / count - first;
    Batch& part = parts.emplace_back();
    part.images = batch.images.narrow(0, first, length);
    if (batch.targets.defined()) {
      part.targets = batch.targets.narrow(0, first, length);
    }
  }
  return parts;
}

double MicroBatches::share(const Batch& part, const Batch& batch) const {
  if (part.size() == batch.size()) {
    return 1.0;
  }
  const auto& divisor = setup_.strategy->task().divisor;
  if (divisor && batch.targets.defined()) {
    const double all = divisor(batch.targets);
    return all > 0 ? divisor(part.targets) / all : 0.0;
  }
  return static_cast<double>(part.size()) / static_cast<double>(batch.size());
}

std::vector<StatePart> MicroBatches::state() {
  if (!is_on_) {
    return {};
  }
  StatePart part = number_part("micro_batches", count_);
  part.if_missing = IfMissing::kIgnore;
  return {std::move(part)};
}

} // namespace lockstep::train
