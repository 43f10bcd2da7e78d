// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/records/record_row.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/run_names.h"

namespace lockstep::train {
namespace {

template <class T>
decltype(Cell::value) known(const std::optional<T>& value) {
  return value ? decltype(Cell::value)(*value) : std::monostate();
}

std::string text_of(const Cell& cell) {
  return std::visit(
      [&](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return {};
        } else if constexpr (std::is_floating_point_v<T>) {
          return cell.pattern.empty()
                     ? shortest(value)
                     : vformat(cell.pattern, std::array{FormatArg(value)});
        } else {
          return format("{}", value);
        }
      },
      cell.value);
}

Json json_of(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> Json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return {};
        } else {
          return {value};
        }
      },
      cell.value);
}

} // namespace

std::string RecordRow::cells(std::string_view header) const {
  std::vector<std::string> texts;
  for (const std::string& column : split(header, ',')) {
    const auto found = std::ranges::find(cells_, column, &Cell::name);
    texts.push_back(found == cells_.end() ? std::string() : text_of(*found));
  }
  return join(texts, ",");
}

Json RecordRow::to_json(std::string_view event) const {
  Json line = Json::object();
  line.set("event", event);
  for (const Cell& cell : cells_) {
    line.set(cell.name, json_of(cell));
  }
  return line;
}

namespace {

// Of what was not measured, an empty cell.
void add_metrics(
    std::vector<Cell>& cells,
    std::string_view prefix,
    std::span<const MetricValue> values) {
  for (const MetricValue& metric : values) {
    cells.push_back(
        {.name = format("{}{}", prefix, metric.name),
         .value = known(find_metric(values, metric.name))});
  }
}

std::vector<Cell> epoch_cells(const EpochRecord& record) {
  std::vector<Cell> cells{
      {"epoch", record.epoch},
      {"step", record.step},
      {"samples", record.samples},
      {std::string(kTrainLossColumn), record.train.loss}};
  add_metrics(cells, kTrainPrefix, record.train.metrics);
  cells.push_back(
      {std::string(kTestLossColumn), known(record.value(kTestLossColumn))});
  if (record.test) {
    add_metrics(cells, kTestPrefix, record.test->metrics);
  }
  return cells;
}

// For metrics.jsonl alone.
void add_costs(std::vector<Cell>& cells, const EpochRecord& record) {
  const PhaseTimes& phases = record.phases;
  cells.insert(
      cells.end(),
      {{"data_s", phases.data},
       {"forward_s", phases.forward},
       {"backward_s", phases.backward},
       {"update_s", phases.update},
       {"read_s", phases.read},
       {"test_s", phases.test},
       {"save_s", phases.save}});
  const auto add_bytes = [&](std::string_view of, const auto& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] > 0) {
        cells.push_back(
            {.name = format("{}{}_bytes", of, i), .value = numbers[i]});
      }
    }
  };
  add_bytes("rank", record.rank_bytes);
  add_bytes("device", record.device_bytes);
}

} // namespace

std::string results_header(
    std::span<const MetricInfo> train,
    std::span<const MetricInfo> test) {
  // Of the training the number that chooses the best epoch, as a rule.
  std::string header = format("epoch,step,samples,{}", kTrainLossColumn);
  if (!train.empty()) {
    header += format(",{}{}", kTrainPrefix, train.front().name);
  }
  header += format(",{}", kTestLossColumn);
  for (const MetricInfo& info : test) {
    header += format(",{}{}", kTestPrefix, info.name);
  }
  return header + ",lr,images_per_s,epoch_s,user_s,system_s";
}

RecordRow row_of(const StepRecord& record) {
  std::vector<Cell> cells{
      {"step", record.step},
      {"epoch", record.epoch},
      {"batch", record.batch},
      {"batches", record.batches},
      {"samples", record.samples},
      {"loss", record.loss}};
  add_metrics(cells, /*prefix=*/{}, record.metrics);
  cells.insert(
      cells.end(),
      {{"lr", record.lr},
       {"seconds", record.seconds},
       {"data_seconds", record.data_seconds}});
  return RecordRow(std::move(cells));
}

RecordRow row_of(const EpochRecord& record) {
  std::vector<Cell> cells = epoch_cells(record);
  cells.insert(
      cells.end(),
      {{"best", record.is_best},
       {"best_by", std::string_view(record.best_by.column)},
       {std::string(kRateColumn), record.lr},
       {"images_per_s", record.images_per_second, "{:.1f}"},
       {std::string(kSecondsColumn), record.times.wall, "{:.3f}"},
       {"user_s", record.times.user, "{:.3f}"},
       {"system_s", record.times.system, "{:.3f}"}});
  add_costs(cells, record);
  return RecordRow(std::move(cells));
}

} // namespace lockstep::train
