// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/metric_row.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

template <class T>
decltype(Metric::value) known(const std::optional<T>& value) {
  return value ? decltype(Metric::value)(*value) : std::monostate();
}

std::string cell_of(const Metric& metric) {
  return std::visit(
      [&](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return {};
        } else if constexpr (std::is_floating_point_v<T>) {
          return metric.pattern.empty()
                     ? shortest(value)
                     : vformat(metric.pattern, std::array{FormatArg(value)});
        } else {
          return format("{}", value);
        }
      },
      metric.value);
}

Json json_of(const Metric& metric) {
  return std::visit(
      [](const auto& value) -> Json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return {};
        } else {
          return {value};
        }
      },
      metric.value);
}

} // namespace

const Metric& MetricRow::find(std::string_view name) const {
  const auto found = std::ranges::find(metrics_, name, &Metric::name);
  LOCKSTEP_CHECK(found != metrics_.end());
  return *found;
}

std::string MetricRow::cells(std::string_view header) const {
  std::vector<std::string> cells;
  for (const std::string& column : split(header, ',')) {
    cells.push_back(cell_of(find(column)));
  }
  return join(cells, ",");
}

Json MetricRow::to_json(std::string_view event) const {
  Json line = Json::object();
  line.set("event", event);
  for (const Metric& metric : metrics_) {
    line.set(metric.name, json_of(metric));
  }
  return line;
}

std::optional<double> MetricRow::number(std::string_view name) const {
  return std::visit(
      [](const auto& value) -> std::optional<double> {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<T>) {
          return static_cast<double>(value);
        } else {
          LOCKSTEP_CHECK((std::is_same_v<T, std::monostate>));
          return std::nullopt;
        }
      },
      find(name).value);
}

MetricRow row_of(const StepRecord& record) {
  return MetricRow(
      {{"step", record.step},
       {"epoch", record.epoch},
       {"batch", record.batch},
       {"batches", record.batches},
       {"samples", record.samples},
       {"loss", record.loss},
       {"top1", known(record.top1)},
       {"top5", known(record.top5)},
       {"lr", record.lr},
       {"seconds", record.seconds},
       {"data_seconds", record.data_seconds}});
}

MetricRow row_of(const EpochRecord& record) {
  const Score test = record.test.value_or(Score());
  const auto test_loss = record.test ? std::optional(test.loss) : std::nullopt;
  return MetricRow(
      {{"epoch", record.epoch},
       {"step", record.step},
       {"samples", record.samples},
       {kTrainLossColumn, record.train.loss},
       {kTrainAccuracyColumn, known(record.train.top1)},
       {"train_top5", known(record.train.top5)},
       {kTestLossColumn, known(test_loss)},
       {kTestAccuracyColumn, known(test.top1)},
       {"val_top5", known(test.top5)},
       {"best", record.is_best},
       {"best_by", best_column(record.best_by)},
       {kRateColumn, record.lr},
       {"images_per_s", record.images_per_second, "{:.1f}"},
       {kSecondsColumn, record.times.wall, "{:.3f}"},
       {"user_s", record.times.user, "{:.3f}"},
       {"system_s", record.times.system, "{:.3f}"}});
}

} // namespace lockstep::train
