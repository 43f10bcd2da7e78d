// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/part_runner.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <ATen/core/grad_mode.h>

namespace lockstep::internal {
namespace {

// Below this, waking the workers costs more than the update itself.
constexpr std::int64_t kMinParallelElements = 65'536;

bool is_worth_workers(const std::vector<Update>& updates) {
  std::int64_t elements = 0;
  for (const Update& update : updates) {
    if (!update.param.is_cpu()) {
      return false;
    }
    elements += update.param.numel();
  }
  return elements >= kMinParallelElements;
}

} // namespace

// The largest first, each to the part that has least so far.
std::vector<Part> PartRunner::split(std::vector<Update> updates) {
  std::ranges::stable_sort(
      updates,
      std::ranges::greater(),
      [](const Update& update) { return update.param.numel(); });
  std::vector<Part> parts;
  parts.reserve(workers_.count);
  std::vector<std::int64_t> load(workers_.count, 0);
  for (std::size_t i = 0; i < workers_.count; ++i) {
    parts.push_back({.scratch = scratch_[i]});
  }
  for (Update& update : updates) {
    const auto least = std::ranges::min_element(load);
    *least += update.param.numel();
    const auto part = static_cast<std::size_t>(least - load.begin());
    parts[part].updates.push_back(std::move(update));
  }
  return parts;
}

void PartRunner::run(
    std::vector<Update> updates,
    const std::function<void(Part&)>& step) {
  // Threads that are borrowed record gradients unless they are told not to.
  const auto update = [&](Part& part) {
    const at::NoGradGuard no_grad;
    step(part);
  };
  scratch_.resize(std::max<std::size_t>(workers_.count, 1));
  if (!workers_.run || workers_.count < 2 || !is_worth_workers(updates)) {
    Part all{.updates = std::move(updates), .scratch = scratch_[0]};
    update(all);
    return;
  }
  std::vector<Part> parts = split(std::move(updates));
  workers_.run(parts.size(), [&](std::size_t i) { update(parts[i]); });
}

} // namespace lockstep::internal
