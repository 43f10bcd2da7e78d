// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>

namespace lockstep::train {

Hits count_hits(const at::Tensor& outputs, const at::Tensor& targets) {
  const at::NoGradGuard no_grad;
  const std::int64_t k = std::min<std::int64_t>(5, outputs.size(1));
  const at::Tensor best = std::get<1>(outputs.topk(k, /*dim=*/1));
  const at::Tensor right = best.eq(targets.unsqueeze(1));
  return {
      .top1 = right.select(1, 0).sum().item<std::int64_t>(),
      .top5 = right.sum().item<std::int64_t>()};
}

void Scoring::add(float loss, const Hits& hits, std::int64_t samples) {
  loss_ += static_cast<double>(loss) * static_cast<double>(samples);
  hits_.top1 += hits.top1;
  hits_.top5 += hits.top5;
  samples_ += samples;
}

Score Scoring::score(double seconds) const {
  if (samples_ == 0) {
    return {.seconds = seconds};
  }
  const auto samples = static_cast<double>(samples_);
  return {
      .loss = loss_ / samples,
      .top1 = 100.0 * static_cast<double>(hits_.top1) / samples,
      .top5 = 100.0 * static_cast<double>(hits_.top5) / samples,
      .seconds = seconds};
}

Score evaluate(Strategy& strategy, Loader& loader, std::int64_t samples) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const at::NoGradGuard no_grad;
  strategy.train(false);
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  loader.start_epoch(std::move(order), /*epoch=*/0);
  Scoring scoring;
  while (const auto batch = loader.next()) {
    const at::Tensor outputs = strategy.forward(batch->images);
    const at::Tensor targets = batch->targets.to(outputs.device());
    scoring.add(
        at::cross_entropy_loss(outputs, targets).item<float>(),
        count_hits(outputs, targets),
        batch->size());
  }
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  return scoring.score(elapsed.count());
}

} // namespace lockstep::train
