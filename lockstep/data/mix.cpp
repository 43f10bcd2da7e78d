// SPDX-License-Identifier: BSD-3-Clause
//
// MixUp (Zhang, Cisse, Dauphin and Lopez-Paz 2018) and CutMix (Yun et al. 2019)
// as torchvision.transforms.v2 defines them.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include <ATen/TensorIndexing.h>
#include <ATen/ops/one_hot.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/augment.h"
#include "lockstep/data/internal/mix_draws.h"

namespace lockstep {
namespace internal {
namespace {

// A normal number, by Box and Muller.
double normal(Draws& draws) {
  const double radius = std::sqrt(-2.0 * std::log1p(-draws.uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * draws.uniform());
}

// The logarithm of a number of the gamma distribution of that shape: Marsaglia
// and Tsang, "A Simple Method for Generating Gamma Variables" (2000). For
// shapes below 1 the number itself may be too small for a double.
double log_gamma(double shape, Draws& draws) {
  if (shape < 1) {
    const double larger = log_gamma(shape + 1, draws);
    return larger + std::log1p(-draws.uniform()) / shape;
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = normal(draws);
    const double root = 1.0 + c * x;
    const double u = 1.0 - draws.uniform();
    if (root <= 0) {
      continue;
    }
    const double v = root * root * root;
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d * v);
    }
  }
}

} // namespace

double drawn_beta(double alpha, Draws& draws) {
  const double first = log_gamma(alpha, draws);
  const double second = log_gamma(alpha, draws);
  return 1.0 / (1.0 + std::exp(second - first));
}

CutBox cut_box(
    double lambda,
    std::int64_t x,
    std::int64_t y,
    std::int64_t height,
    std::int64_t width) {
  const double half = 0.5 * std::sqrt(1.0 - lambda);
  const auto wide =
      static_cast<std::int64_t>(half * static_cast<double>(width));
  const auto high =
      static_cast<std::int64_t>(half * static_cast<double>(height));
  return {
      .left = std::max<std::int64_t>(x - wide, 0),
      .top = std::max<std::int64_t>(y - high, 0),
      .right = std::min(x + wide, width),
      .bottom = std::min(y + high, height)};
}

} // namespace internal

namespace {

using at::indexing::Slice;

// Draws of batches, which have no steps: not those of any sample's step.
constexpr std::uint32_t kMixStep = 0x7FFF;

[[noreturn]] void bad_mix(std::string message) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.mix",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

void check(const Batch& batch, const MixOptions& options) {
  if (!(options.alpha > 0) || !std::isfinite(options.alpha)) {
    bad_mix(format("alpha must be above 0, got {}", options.alpha));
  }
  if (!batch.images.defined() || batch.images.dim() != 4 ||
      !batch.images.is_floating_point()) {
    bad_mix("images must be floats of 4 dimensions, [N, C, H, W]");
  }
  const at::Tensor& targets = batch.targets;
  const bool are_classes = targets.defined() && targets.dim() == 1 &&
                           targets.scalar_type() == at::kLong;
  const bool are_shares =
      targets.defined() && targets.dim() == 2 && targets.is_floating_point();
  if ((!are_classes && !are_shares) ||
      targets.size(0) != batch.images.size(0)) {
    bad_mix(
        "targets must be class numbers, [N] int64, or their shares, [N, "
        "classes] float, one for each image");
  }
  if (are_classes && targets.numel() > 0) {
    const auto low = targets.min().item<std::int64_t>();
    const auto high = targets.max().item<std::int64_t>();
    if (low < 0 || high >= options.num_classes) {
      bad_mix(format(
          "class {} is outside the {} classes of num_classes",
          low < 0 ? low : high,
          options.num_classes));
    }
  }
}

at::Tensor shares_of(const at::Tensor& targets, std::int64_t classes) {
  return targets.dim() == 2 ? targets
                            : at::one_hot(targets, classes).to(at::kFloat);
}

// lambda * x[i] + (1 - lambda) * x[i - 1].
at::Tensor mixed(const at::Tensor& x, double lambda) {
  return x.roll(1, 0).mul_(1.0 - lambda).add_(x.mul(lambda));
}

internal::Draws draws_of(const MixOptions& options) {
  return {options.seed, options.epoch, options.batch, kMixStep};
}

} // namespace

Batch mix_up(const Batch& batch, const MixOptions& options) {
  check(batch, options);
  internal::Draws draws = draws_of(options);
  const double lambda = internal::drawn_beta(options.alpha, draws);
  return {
      .images = mixed(batch.images, lambda),
      .targets = mixed(shares_of(batch.targets, options.num_classes), lambda)};
}

Batch cut_mix(const Batch& batch, const MixOptions& options) {
  check(batch, options);
  internal::Draws draws = draws_of(options);
  const double lambda = internal::drawn_beta(options.alpha, draws);
  const std::int64_t height = batch.images.size(2);
  const std::int64_t width = batch.images.size(3);
  const std::int64_t x = draws.below(width);
  const std::int64_t y = draws.below(height);
  const internal::CutBox box = internal::cut_box(lambda, x, y, height, width);
  const std::array<at::indexing::TensorIndex, 4> place{
      Slice(),
      Slice(),
      Slice(box.top, box.bottom),
      Slice(box.left, box.right)};
  at::Tensor images = batch.images.clone();
  images.index_put_(place, batch.images.roll(1, 0).index(place));
  const double share =
      static_cast<double>((box.right - box.left) * (box.bottom - box.top)) /
      static_cast<double>(width * height);
  return {
      .images = std::move(images),
      .targets =
          mixed(shares_of(batch.targets, options.num_classes), 1.0 - share)};
}

Batch mix_batch(
    const Batch& batch,
    const MixOptions& options,
    double cutmix_alpha) {
  const bool can_mix = options.alpha != 0;
  bool cuts = cutmix_alpha != 0;
  if (!can_mix && !cuts) {
    return batch;
  }
  if (can_mix && cuts) {
    internal::Draws draws(
        options.seed,
        options.epoch,
        options.batch,
        kMixStep - 1);
    cuts = draws.below(2) == 1;
  }
  MixOptions chosen = options;
  chosen.alpha = cuts ? cutmix_alpha : options.alpha;
  return cuts ? cut_mix(batch, chosen) : mix_up(batch, chosen);
}

} // namespace lockstep
