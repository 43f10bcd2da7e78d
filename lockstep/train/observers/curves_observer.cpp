// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/curves_observer.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/base/internal/csv.h"
#include "lockstep/base/strings.h"
#include "lockstep/report/curves.h"
#include "lockstep/train/run/run_folder.h"

namespace lockstep::train {
namespace {

report::Curve curve_of(
    const CsvTable& table,
    const std::string& name,
    std::string_view column) {
  report::Curve curve{.name = name, .x = table.column(kEpochColumn)};
  for (const std::optional<double>& cell : table.cells(column)) {
    curve.y.push_back(cell.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  return curve;
}

std::string title_of(const MetricInfo& info) {
  const std::string name = info.name == "top1"   ? "Accuracy"
                           : info.name == "top5" ? "Top-5 accuracy"
                                                 : info.name;
  return info.unit.empty() ? name : format("{} ({})", name, info.unit);
}

} // namespace

CurvesObserver::CurvesObserver(RunFiles& files, std::string folder)
    : files_(files), folder_(std::move(folder)) {}

void CurvesObserver::on_start(const StartRecord& record) {
  metrics_ =
      record.test_metrics.empty() ? record.train_metrics : record.test_metrics;
}

void CurvesObserver::on_epoch(const EpochRecord& /*record*/) {
  const CsvTable table(files_.read(format("{}/{}", folder_, kResultsFile)));
  using Names = std::vector<std::pair<std::string, std::string>>;
  std::vector<report::Panel> panels;
  const auto add = [&](std::string title, const Names& names) {
    report::Panel panel{.title = std::move(title)};
    for (const auto& [name, column] : names) {
      // What a run does not measure has no curve.
      if (!table.column(column).empty()) {
        panel.curves.push_back(curve_of(table, name, column));
      }
    }
    if (!panel.curves.empty()) {
      panels.push_back(std::move(panel));
    }
  };
  const auto add_pair = [&](std::string title, std::string_view name) {
    add(std::move(title),
        {{"train", format("{}{}", kTrainPrefix, name)},
         {"test", format("{}{}", kTestPrefix, name)}});
  };
  add_pair("Loss", kLossName);
  for (const MetricInfo& info : metrics_) {
    add_pair(title_of(info), info.name);
  }
  add("Learning rate", {{"last step", std::string(kRateColumn)}});
  files_.replace(
      format("{}/{}", folder_, kCurvesFile),
      report::draw_curves(base_name(folder_), "epoch", panels));
}

} // namespace lockstep::train
