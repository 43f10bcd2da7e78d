// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "lockstep/base/error.h"
#include "lockstep/train/task.h"

namespace lockstep::train {
namespace {

// What `more` says of a row: NaN where it says nothing, as AUROC of the first
// of two classes.
double value_of_row(
    const MetricTable& more,
    const std::string& row,
    std::size_t column) {
  const auto found = std::ranges::find(more.rows, row, &MetricRow::name);
  return found == more.rows.end() ? std::numeric_limits<double>::quiet_NaN()
                                  : found->values[column];
}

// Columns that are there already are not added again.
void add_columns(MetricTable& table, const MetricTable& more) {
  for (std::size_t column = 0; column < more.columns.size(); ++column) {
    const std::string& name = more.columns[column];
    if (std::ranges::find(table.columns, name) != table.columns.end()) {
      continue;
    }
    table.columns.push_back(name);
    for (MetricRow& row : table.rows) {
      row.values.push_back(value_of_row(more, row.name, column));
    }
  }
}

} // namespace

void add_table(std::vector<MetricTable>& tables, MetricTable more) {
  const auto same = std::ranges::find(tables, more.name, &MetricTable::name);
  if (same == tables.end()) {
    tables.push_back(std::move(more));
  } else {
    add_columns(*same, more);
  }
}

std::vector<MetricInfo> infos_of(MetricSpan metrics) {
  std::vector<MetricInfo> all;
  for (const auto& metric : metrics) {
    const std::vector<MetricInfo> infos = metric->infos();
    all.insert(all.end(), infos.begin(), infos.end());
  }
  return all;
}

at::Tensor measure(
    const at::Tensor& loss,
    const at::Tensor& outputs,
    const at::Tensor& targets,
    MetricSpan metrics) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> numbers{loss.detach().reshape({1}).to(at::kDouble)};
  for (const auto& metric : metrics) {
    numbers.push_back(
        metric->sums(outputs, targets).to(numbers.front().device()));
  }
  return at::cat(numbers);
}

StepResult::StepResult(
    const at::Tensor& numbers,
    std::int64_t samples,
    std::optional<double> weight)
    : numbers_(numbers.to(at::kCPU, /*non_blocking=*/true)),
      samples_(samples),
      weight_(weight) {
  const c10::Device device = numbers.device();
  if (!device.is_cpu()) {
    const c10::impl::VirtualGuardImpl impl(device.type());
    arrived_.emplace(device.type()).record(impl.getStream(device));
  }
}

std::optional<double> weight_of(
    const TargetCount& counted,
    const at::Tensor& targets) {
  return counted && targets.defined() ? std::optional(counted(targets))
                                      : std::nullopt;
}

BatchScore StepResult::read() const {
  if (arrived_) {
    arrived_->synchronize();
  }
  const auto* number = numbers_.const_data_ptr<double>();
  return {
      .loss = static_cast<float>(number[0]),
      .sums = {number + 1, number + numbers_.numel()},
      .samples = samples_,
      .weight = weight_};
}

Scoring::Scoring(MetricSpan metrics) {
  for (const auto& metric : metrics) {
    sums.resize(sums.size() + static_cast<std::size_t>(metric->size()));
  }
}

void Scoring::add(const BatchScore& batch) {
  LOCKSTEP_CHECK(batch.sums.size() == sums.size());
  const double counted =
      batch.weight.value_or(static_cast<double>(batch.samples));
  if (counted != 0) {
    loss += static_cast<double>(batch.loss) * counted;
    weight += counted;
  }
  std::ranges::transform(sums, batch.sums, sums.begin(), std::plus());
  samples += batch.samples;
}

void Scoring::add(const Scoring& other) {
  LOCKSTEP_CHECK(other.sums.size() == sums.size());
  loss += other.loss;
  weight += other.weight;
  std::ranges::transform(sums, other.sums, sums.begin(), std::plus());
  samples += other.samples;
}

void Scoring::clear() {
  loss = 0.0;
  weight = 0.0;
  std::ranges::fill(sums, 0.0);
  samples = 0;
}

Scoring Scoring::over(const dist::ProcessGroup& group) const {
  std::vector<double> all{loss, weight, static_cast<double>(samples)};
  const auto before_sums = std::ssize(all);
  all.insert(all.end(), sums.begin(), sums.end());
  group.sum(all);
  Scoring total;
  total.loss = all[0];
  total.weight = all[1];
  total.samples = static_cast<std::int64_t>(all[2]);
  total.sums.assign(all.begin() + before_sums, all.end());
  return total;
}

Score Scoring::score(MetricSpan metrics, double seconds) const {
  // Of nothing the loss is 0.
  Score score{.loss = weight == 0 ? 0.0 : loss / weight, .seconds = seconds};
  std::span<const double> rest = sums;
  for (const auto& metric : metrics) {
    const auto size = static_cast<std::size_t>(metric->size());
    const std::vector<double> values = metric->values(rest.first(size));
    rest = rest.subspan(size);
    const std::vector<MetricInfo> infos = metric->infos();
    for (std::size_t i = 0; i < infos.size(); ++i) {
      score.metrics.push_back({.name = infos[i].name, .value = values[i]});
    }
  }
  return score;
}

} // namespace lockstep::train
