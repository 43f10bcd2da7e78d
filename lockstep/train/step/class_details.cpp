// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/class_details.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/zeros.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/uncounted.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kMostClasses = 1000;
/// With more there are counts by class only.
constexpr std::int64_t kMostMatrixClasses = 128;

/// Counts what is as expected, and says nothing of anything else.
class ForPeople final : public Metric {
 public:
  ForPeople(std::unique_ptr<Metric> metric, std::int64_t classes)
      : metric_(std::move(metric)), classes_(classes) {}

  [[nodiscard]] std::vector<MetricInfo> infos() const override {
    return metric_->infos();
  }
  [[nodiscard]] std::int64_t size() const override {
    return metric_->size();
  }
  [[nodiscard]] at::Tensor sums(
      const at::Tensor& outputs,
      const at::Tensor& targets) const override {
    if (!outputs.defined() || !targets.defined()) {
      return at::zeros({size()}, at::kDouble);
    }
    const bool fits = outputs.dim() >= 2 && outputs.size(1) == classes_ &&
                      outputs.is_floating_point() &&
                      targets.dim() == outputs.dim() - 1 &&
                      !targets.is_floating_point();
    return fits ? metric_->sums(outputs, targets)
                : at::zeros({size()}, outputs.options().dtype(at::kDouble));
  }
  [[nodiscard]] std::vector<double> values(
      std::span<const double> sums) const override {
    return metric_->values(sums);
  }
  [[nodiscard]] std::vector<MetricTable> tables(
      std::span<const double> sums,
      std::span<const std::string> names) const override {
    const bool is_counted =
        std::ranges::any_of(sums, [](double sum) { return sum != 0; });
    return is_counted ? metric_->tables(sums, names)
                      : std::vector<MetricTable>();
  }

 private:
  std::unique_ptr<Metric> metric_;
  std::int64_t classes_;
};

bool measures(const Task& task, std::string_view number) {
  const std::vector<MetricInfo> infos = infos_of(task.metrics);
  return std::ranges::find(infos, number, &MetricInfo::name) != infos.end();
}

} // namespace

Metrics class_details(const Task& task, const Dataset& data) {
  const TargetFormat targets = data.target_format();
  const std::int64_t classes = data.num_classes();
  const std::size_t dims = targets.shape.size();
  if (targets.kind != TargetKind::kClasses || (dims != 0 && dims != 2) ||
      classes < 2 || classes > kMostClasses || measures(task, "f1_macro")) {
    return {};
  }
  return {std::make_shared<ForPeople>(
      confusion(
          classes,
          {.ignore_index =
               dims == 2 ? uncounted_pixel(classes) : kUncountedClass,
           .max_matrix_classes = kMostMatrixClasses}),
      classes)};
}

} // namespace lockstep::train
