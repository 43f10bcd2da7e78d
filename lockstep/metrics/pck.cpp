// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/argmax.h>

#include "lockstep/base/strings.h"
#include "lockstep/metrics/internal/checks.h"
#include "lockstep/metrics/internal/class_rates.h"
#include "lockstep/metrics/internal/counts.h"
#include "lockstep/metrics/metric.h"

namespace lockstep {
namespace {

constexpr std::string_view kPck = "pck";

// The distance of two pixels: the root of (x/width)^2 + (y/height)^2, by unit.
struct DistanceUnits {
  double width = 1;
  double height = 1;
  double unit = 1;
};

DistanceUnits
units_of(PckScale scale, std::int64_t width, std::int64_t height) {
  switch (scale) {
    case PckScale::kLongerSide:
      return {.unit = static_cast<double>(std::max(width, height))};
    case PckScale::kEachSide:
      return {
          .width = static_cast<double>(width),
          .height = static_cast<double>(height)};
    case PckScale::kPixels:
      break;
  }
  return {};
}

// Sums: right key points by channel, then all key points by channel; of any
// number of channels, both over all.
class PckMetric final : public Metric {
 public:
  explicit PckMetric(const PckOptions& options) : options_(options) {}

  [[nodiscard]] std::vector<MetricInfo> infos() const override {
    return {{.name = std::string(kPck)}};
  }

  [[nodiscard]] std::int64_t size() const override {
    return 2 * std::max<std::int64_t>(options_.num_points, 1);
  }

  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    const at::NoGradGuard no_grad;
    check(outputs, targets);
    const std::int64_t width = outputs.size(3);
    const DistanceUnits units =
        units_of(options_.scale, width, outputs.size(2));
    // There is no argmax of bool.
    const at::Tensor wanted =
        targets.detach()
            .to(targets.scalar_type() == at::kBool ? at::kByte
                                                   : targets.scalar_type())
            .flatten(2);
    const at::Tensor is_point = wanted.amax(/*dim=*/-1).gt(0);
    const at::Tensor found = outputs.detach().flatten(2).argmax(/*dim=*/-1);
    const at::Tensor place = wanted.argmax(/*dim=*/-1);
    const at::Tensor x = found.remainder(width)
                             .sub(place.remainder(width))
                             .to(at::kDouble)
                             .div_(units.width);
    const at::Tensor y = found.div(width, "floor")
                             .sub(place.div(width, "floor"))
                             .to(at::kDouble)
                             .div_(units.height);
    // Divided, not multiplied: 3 pixels of 60 are 0.05.
    const at::Tensor distance =
        x.square().add_(y.square()).sqrt_().div_(units.unit);
    const at::Tensor is_right =
        distance.le(options_.threshold).logical_and_(is_point);
    if (options_.num_points == 0) {
      return internal::joined_sums(
          {is_right.sum(at::kDouble), is_point.sum(at::kDouble)});
    }
    return internal::joined_sums(
        {is_right.sum(0, false, at::kDouble),
         is_point.sum(0, false, at::kDouble)});
  }

  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    internal::check_sums(kPck, sums, size());
    double right = 0;
    double points = 0;
    for (std::size_t i = 0; i < sums.size() / 2; ++i) {
      right += sums[i];
      points += sums[sums.size() / 2 + i];
    }
    return {internal::share(right, points)};
  }

  [[nodiscard]] std::vector<MetricTable> tables(
      std::span<const double> sums,
      std::span<const std::string> class_names) const override {
    internal::check_sums(kPck, sums, size());
    if (options_.num_points == 0) {
      return {};
    }
    const std::vector<std::string> names =
        internal::row_names(kPck, class_names, options_.num_points);
    MetricTable table{.name = "per_point", .columns = {"pck", "actual"}};
    table.rows.reserve(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double points = sums[names.size() + i];
      table.rows.push_back(
          {.name = names[i],
           .values = {internal::share(sums[i], points), points}});
    }
    return {table};
  }

 private:
  void check(const at::Tensor& outputs, const at::Tensor& targets) const {
    internal::check_pair(kPck, outputs, targets);
    const std::int64_t points =
        options_.num_points == 0 ? -1 : options_.num_points;
    internal::check_shape(
        kPck,
        outputs,
        std::array<std::int64_t, 4>{-1, points, -1, -1},
        points < 0 ? "[N, points, H, W]" : format("[N, {}, H, W]", points));
    internal::check_like_outputs(kPck, outputs, targets);
    if (outputs.size(2) == 0 || outputs.size(3) == 0) {
      internal::refuse_metric_input(
          kPck,
          "outputs: expected maps of at least one pixel, got none");
    }
  }

  PckOptions options_;
};

} // namespace

std::unique_ptr<Metric> pck(const PckOptions& options) {
  internal::check_at_least(kPck, "num_points", options.num_points, 0);
  if (!(options.threshold > 0 && std::isfinite(options.threshold))) {
    internal::refuse_metric_option(
        kPck,
        format(
            "threshold: expected a number above 0, got {}",
            options.threshold));
  }
  return std::make_unique<PckMetric>(options);
}

} // namespace lockstep
