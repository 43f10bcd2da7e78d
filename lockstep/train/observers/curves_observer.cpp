// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/curves_observer.h"

#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/report/run_curves.h"
#include "lockstep/train/checkpoints/run_folder.h"

namespace lockstep::train {

CurvesObserver::CurvesObserver(
    RunFiles& files,
    std::string folder,
    std::shared_ptr<const report::RunHistory> history)
    : files_(files), folder_(std::move(folder)), history_(std::move(history)) {}

void CurvesObserver::on_epoch(const EpochRecord& /*record*/) {
  const report::RunCurves curves = report::curves_of(*history_);
  files_.replace(
      format("{}/{}", folder_, kCurvesFile),
      report::draw_curves(base_name(folder_), curves.x_name, curves.panels));
}

} // namespace lockstep::train
