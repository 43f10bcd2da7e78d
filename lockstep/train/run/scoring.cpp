// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/scoring.h"

#include <algorithm>
#include <array>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace lockstep::train {
namespace {

// Units: samples, in float64 as all numbers of a batch.
std::array<at::Tensor, 2> count_hits(
    const at::Tensor& outputs,
    const at::Tensor& targets) {
  const std::int64_t k = std::min<std::int64_t>(5, outputs.size(1));
  const at::Tensor best = std::get<1>(outputs.topk(k, /*dim=*/1));
  const at::Tensor right = best.eq(targets.unsqueeze(1));
  return {right.select(1, 0).sum(at::kDouble), right.sum(at::kDouble)};
}

bool can_have_hits(const at::Tensor& outputs, const at::Tensor& targets) {
  return outputs.dim() == 2 && targets.defined() && targets.dim() == 1 &&
         targets.size(0) == outputs.size(0) &&
         targets.scalar_type() == at::kLong;
}

} // namespace

at::Tensor measure(
    const at::Tensor& loss,
    const at::Tensor& outputs,
    const at::Tensor& targets,
    bool has_classes) {
  const at::NoGradGuard no_grad;
  const at::Tensor average = loss.detach().reshape({}).to(at::kDouble);
  std::array<at::Tensor, 2> hits{
      at::zeros_like(average),
      at::zeros_like(average)};
  if (has_classes && can_have_hits(outputs, targets)) {
    hits = count_hits(outputs, targets);
  }
  return at::stack({average, hits[0], hits[1]});
}

StepResult::StepResult(const at::Tensor& numbers, std::int64_t samples)
    : numbers_(numbers.to(at::kCPU, /*non_blocking=*/true)), samples_(samples) {
  const c10::Device device = numbers.device();
  if (!device.is_cpu()) {
    const c10::impl::VirtualGuardImpl impl(device.type());
    arrived_.emplace(device.type()).record(impl.getStream(device));
  }
}

BatchScore StepResult::read() const {
  if (arrived_) {
    arrived_->synchronize();
  }
  const auto* number = numbers_.const_data_ptr<double>();
  return {
      .loss = static_cast<float>(number[0]),
      .top1 = static_cast<std::int64_t>(number[1]),
      .top5 = static_cast<std::int64_t>(number[2]),
      .samples = samples_};
}

void Scoring::add(const BatchScore& batch) {
  loss += static_cast<double>(batch.loss) * static_cast<double>(batch.samples);
  top1 += batch.top1;
  top5 += batch.top5;
  samples += batch.samples;
}

Scoring Scoring::over(const dist::ProcessGroup& group) const {
  std::array<double, 4> sums{
      loss,
      static_cast<double>(top1),
      static_cast<double>(top5),
      static_cast<double>(samples)};
  group.sum(sums);
  return {
      .loss = sums[0],
      .top1 = static_cast<std::int64_t>(sums[1]),
      .top5 = static_cast<std::int64_t>(sums[2]),
      .samples = static_cast<std::int64_t>(sums[3])};
}

Score Scoring::score(double seconds, bool has_classes) const {
  // Of no samples everything is 0.
  const auto count = static_cast<double>(std::max<std::int64_t>(samples, 1));
  Score score{.loss = loss / count, .seconds = seconds};
  if (has_classes) {
    score.top1 = 100.0 * static_cast<double>(top1) / count;
    score.top5 = 100.0 * static_cast<double>(top5) / count;
  }
  return score;
}

} // namespace lockstep::train
