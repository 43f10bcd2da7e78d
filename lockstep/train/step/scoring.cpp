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

constexpr double kUnsaid = std::numeric_limits<double>::quiet_NaN();

// Where the list has what `more` has at `index`; its end if it has not. Of
// several of one name the first is the first, the second the second.
template <class List, class Name = std::identity>
std::size_t place_of(
    const List& list,
    const List& more,
    std::size_t index,
    Name name = {}) {
  const auto is_it = [&](const auto& item) {
    return std::invoke(name, item) == std::invoke(name, more[index]);
  };
  const auto end = more.begin() + static_cast<std::ptrdiff_t>(index);
  auto before = std::count_if(more.begin(), end, is_it);
  const auto found = std::ranges::find_if(list, [&](const auto& item) {
    return is_it(item) && before-- == 0;
  });
  return static_cast<std::size_t>(found - list.begin());
}

// Columns and rows that are there already are not added again. Rows that are
// new stand behind the one before them in `more`.
void merge(MetricTable& table, const MetricTable& more) {
  const std::size_t old_columns = table.columns.size();
  std::vector<std::size_t> places; // of the columns of `more`
  for (std::size_t i = 0; i < more.columns.size(); ++i) {
    places.push_back(place_of(table.columns, more.columns, i));
    if (places.back() == table.columns.size()) {
      table.columns.push_back(more.columns[i]);
    }
  }
  for (MetricRow& row : table.rows) {
    row.values.resize(table.columns.size(), kUnsaid);
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < more.rows.size(); ++i) {
    const MetricRow& from = more.rows[i];
    std::size_t place = place_of(table.rows, more.rows, i, &MetricRow::name);
    const bool is_new = place == table.rows.size();
    if (is_new) {
      place = next;
      table.rows.insert(
          table.rows.begin() + static_cast<std::ptrdiff_t>(place),
          {.name = from.name,
           .values = std::vector<double>(table.columns.size(), kUnsaid)});
    }
    for (std::size_t j = 0; j < places.size(); ++j) {
      if (is_new || places[j] >= old_columns) {
        table.rows[place].values[places[j]] = from.values[j];
      }
    }
    next = place + 1;
  }
}

} // namespace

void add_table(std::vector<MetricTable>& tables, MetricTable more) {
  const auto same = std::ranges::find(tables, more.name, &MetricTable::name);
  if (same == tables.end()) {
    tables.push_back(std::move(more));
  } else {
    merge(*same, more);
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
