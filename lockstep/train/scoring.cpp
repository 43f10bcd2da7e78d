// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/scoring.h"

#include <algorithm>
#include <array>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

namespace lockstep::train {
namespace {

at::Tensor count_hits(const at::Tensor& outputs, const at::Tensor& targets) {
  const bool has_classes =
      outputs.dim() == 2 && targets.defined() && targets.dim() == 1 &&
      targets.size(0) == outputs.size(0) && targets.scalar_type() == at::kLong;
  if (!has_classes) {
    return at::zeros({2}, at::kLong);
  }
  const std::int64_t k = std::min<std::int64_t>(5, outputs.size(1));
  const at::Tensor best = std::get<1>(outputs.topk(k, /*dim=*/1));
  const at::Tensor right = best.eq(targets.unsqueeze(1));
  return at::stack({right.select(1, 0).sum(), right.sum()});
}

} // namespace

BatchScore StepResult::read() const {
  const at::Tensor counts = hits.cpu();
  const auto* count = counts.const_data_ptr<std::int64_t>();
  return {
      .loss = loss.item<float>(),
      .top1 = count[0],
      .top5 = count[1],
      .samples = samples};
}

StepResult measure(
    const at::Tensor& loss,
    const at::Tensor& outputs,
    const at::Tensor& targets,
    std::int64_t samples) {
  const at::NoGradGuard no_grad;
  return {
      .loss = loss.detach(),
      .hits = count_hits(outputs, targets),
      .samples = samples};
}

void Scoring::add(const BatchScore& batch) {
  loss += static_cast<double>(batch.loss) * static_cast<double>(batch.samples);
  top1 += batch.top1;
  top5 += batch.top5;
  samples += batch.samples;
}

Scoring Scoring::over(World& world) const {
  std::array<double, 4> sums{
      loss,
      static_cast<double>(top1),
      static_cast<double>(top5),
      static_cast<double>(samples)};
  world.sum(sums);
  return {
      .loss = sums[0],
      .top1 = static_cast<std::int64_t>(sums[1]),
      .top5 = static_cast<std::int64_t>(sums[2]),
      .samples = static_cast<std::int64_t>(sums[3])};
}

Score Scoring::score(double seconds) const {
  if (samples == 0) {
    return {.seconds = seconds};
  }
  const auto count = static_cast<double>(samples);
  return {
      .loss = loss / count,
      .top1 = 100.0 * static_cast<double>(top1) / count,
      .top5 = 100.0 * static_cast<double>(top5) / count,
      .seconds = seconds};
}

} // namespace lockstep::train
