// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include "lockstep/base/strings.h"
#include "lockstep/metrics/internal/checks.h"
#include "lockstep/metrics/internal/class_rates.h"
#include "lockstep/metrics/internal/counts.h"
#include "lockstep/metrics/metric.h"

namespace lockstep {
namespace {

constexpr std::string_view kAccuracy = "accuracy";

bool has_shares(const at::Tensor& outputs, const at::Tensor& targets) {
  return targets.is_floating_point() && targets.dim() == 2 &&
         targets.sizes() == outputs.sizes();
}

// Sums: the hits of each k, the samples, the labels outside of the classes.
class AccuracyMetric final : public Metric {
 public:
  AccuracyMetric(std::vector<std::int64_t> top, const LabelOptions& options)
      : top_(std::move(top)), options_(options) {}

  [[nodiscard]] std::vector<MetricInfo> infos() const override {
    std::vector<MetricInfo> infos;
    infos.reserve(top_.size());
    for (const std::int64_t k : top_) {
      infos.push_back({.name = format("top{}", k), .unit = "%"});
    }
    return infos;
  }

  [[nodiscard]] std::int64_t size() const override {
    return std::ssize(top_) + 2;
  }

  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& given) const override {
    const at::NoGradGuard no_grad;
    internal::check_pair(kAccuracy, outputs, given);
    const at::Tensor targets =
        has_shares(outputs, given) ? given.argmax(1) : given;
    internal::check_shape(
        kAccuracy,
        outputs,
        std::array<std::int64_t, 2>{-1, -1},
        "[N, classes]");
    internal::check_labels(kAccuracy, outputs, targets);
    if (outputs.is_cpu() && outputs.scalar_type() == at::kFloat) {
      if (std::optional<at::Tensor> sums =
              sums_without_ties(outputs, targets)) {
        return *std::move(sums);
      }
    }
    // One topk for all k: of equal outputs it may take others for another k.
    const std::int64_t classes = outputs.size(1);
    const std::int64_t most = std::min(std::ranges::max(top_), classes);
    const at::Tensor best = std::get<1>(outputs.topk(most, /*dim=*/1));
    const internal::Labels labels =
        internal::read_labels(targets, classes, options_.ignore_index);
    const at::Tensor is_hit = best.eq(labels.classes.unsqueeze(1))
                                  .logical_and_(labels.is_counted.unsqueeze(1));
    std::vector<at::Tensor> parts;
    parts.reserve(static_cast<std::size_t>(size()));
    for (const std::int64_t k : top_) {
      parts.push_back(is_hit.narrow(1, 0, std::min(k, most)).sum(at::kDouble));
    }
    parts.push_back(labels.is_counted.sum(at::kDouble));
    parts.push_back(labels.outside);
    return internal::joined_sums(parts);
  }

  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    internal::check_sums(kAccuracy, sums, size());
    internal::check_outside(
        kAccuracy,
        sums.back(),
        "0 to one less than the outputs of a sample",
        options_.ignore_index);
    const double samples = sums[top_.size()];
    std::vector<double> values;
    values.reserve(top_.size());
    for (const double hits : sums.first(top_.size())) {
      values.push_back(internal::share(100.0 * hits, samples));
    }
    return values;
  }

 private:
  // None if an output equals that of the target, or is NaN: which one comes
  // first is up to `at::topk`.
  [[nodiscard]] std::optional<at::Tensor> sums_without_ties(
      const at::Tensor& outputs,
      const at::Tensor& targets) const {
    at::Tensor sums = at::zeros({size()}, at::kDouble);
    auto* const hits = sums.mutable_data_ptr<double>();
    const std::size_t most = top_.size();
    const auto rows = outputs.accessor<float, 2>();
    bool has_ties = false;
    hits[most + 1] = internal::count_labels(
        targets,
        outputs.size(1),
        options_.ignore_index,
        [&](std::int64_t i, std::int64_t label) {
          const float own = rows[i][label];
          std::int64_t higher = 0;
          std::int64_t lower = 0;
          for (std::int64_t c = 0; c < rows.size(1); ++c) {
            higher += rows[i][c] > own ? 1 : 0;
            lower += rows[i][c] < own ? 1 : 0;
          }
          has_ties = has_ties || higher + lower + 1 < rows.size(1);
          ++hits[most];
          for (std::size_t k = 0; k < most; ++k) {
            hits[k] += higher < top_[k] ? 1 : 0;
          }
        });
    return has_ties ? std::nullopt : std::optional(std::move(sums));
  }

  std::vector<std::int64_t> top_;
  LabelOptions options_;
};

} // namespace

std::unique_ptr<Metric> accuracy(
    std::vector<std::int64_t> top,
    const LabelOptions& options) {
  if (top.empty()) {
    internal::refuse_metric_option(
        kAccuracy,
        "top: expected a number, got none");
  }
  for (const std::int64_t k : top) {
    internal::check_at_least(kAccuracy, "top", k, 1);
    if (std::ranges::count(top, k) > 1) {
      internal::refuse_metric_option(
          kAccuracy,
          format("top: expected different numbers, got {} twice", k));
    }
  }
  return std::make_unique<AccuracyMetric>(std::move(top), options);
}

} // namespace lockstep
