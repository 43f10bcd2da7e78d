// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/curves_observer.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/report/curves.h"
#include "lockstep/train/run_folder.h"

namespace lockstep::train {
namespace {

/// A table of numbers by the names of its columns.
class Table {
 public:
  explicit Table(const std::string& csv) {
    for (const std::string& line : split(csv, '\n')) {
      rows_.push_back(split(line, ','));
    }
  }

  /// Rows without the column, as after a cut-off write, are left out.
  [[nodiscard]] std::vector<double> column(std::string_view name) const {
    const auto& names = rows_.front();
    const auto at = static_cast<std::size_t>(
        std::ranges::find(names, name) - names.begin());
    std::vector<double> values;
    for (std::size_t i = 1; i < rows_.size(); ++i) {
      if (at < rows_[i].size() && rows_[i].size() == names.size()) {
        values.push_back(std::strtod(rows_[i][at].c_str(), nullptr));
      }
    }
    return values;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

} // namespace

CurvesObserver::CurvesObserver(RunFiles& files, std::string folder)
    : files_(files), folder_(std::move(folder)) {}

void CurvesObserver::on_epoch(const EpochRecord& /*record*/) {
  const Table table(files_.read(format("{}/{}", folder_, kResultsFile)));
  const auto curve = [&](std::string name, std::string_view column) {
    return report::Curve{
        .name = std::move(name),
        .x = table.column("epoch"),
        .y = table.column(column)};
  };
  const std::array<report::Panel, 3> panels{{
      {.title = "Loss",
       .curves = {curve("train", "train_loss"), curve("test", "val_loss")}},
      {.title = "Accuracy (%)",
       .curves = {curve("train", "train_top1"), curve("test", "val_top1")}},
      {.title = "Learning rate", .curves = {curve("last step", "lr")}},
  }};
  files_.replace(
      format("{}/{}", folder_, kCurvesFile),
      report::draw_curves(base_name(folder_), "epoch", panels));
}

} // namespace lockstep::train
