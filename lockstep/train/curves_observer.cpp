// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/curves_observer.h"

#include <array>
#include <utility>

#include "lockstep/base/csv.h"
#include "lockstep/base/strings.h"
#include "lockstep/report/curves.h"
#include "lockstep/train/run_folder.h"

namespace lockstep::train {
CurvesObserver::CurvesObserver(RunFiles& files, std::string folder)
    : files_(files), folder_(std::move(folder)) {}

void CurvesObserver::on_epoch(const EpochRecord& /*record*/) {
  const CsvTable table(files_.read(format("{}/{}", folder_, kResultsFile)));
  const auto curve = [&](std::string name, std::string_view column) {
    return report::Curve{
        .name = std::move(name),
        .x = table.column(kEpochColumn),
        .y = table.column(column)};
  };
  const std::array<report::Panel, 3> panels{{
      {.title = "Loss",
       .curves =
           {curve("train", kTrainLossColumn), curve("test", kTestLossColumn)}},
      {.title = "Accuracy (%)",
       .curves =
           {curve("train", kTrainAccuracyColumn),
            curve("test", kTestAccuracyColumn)}},
      {.title = "Learning rate", .curves = {curve("last step", kRateColumn)}},
  }};
  files_.replace(
      format("{}/{}", folder_, kCurvesFile),
      report::draw_curves(base_name(folder_), "epoch", panels));
}

} // namespace lockstep::train
