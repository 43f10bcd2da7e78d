// SPDX-License-Identifier: BSD-3-Clause
//
// The curves of a run: over its epochs, or over its steps until there are
// epochs enough to make a curve.
//   const RunCurves curves = curves_of(history);
//   draw_curves("runs/a", curves.x_name, curves.panels);
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/curves.h"
#include "lockstep/report/run_history.h"

namespace lockstep::report {

/// What is drawn, over "epoch" or "step".
struct RunCurves {
  std::string x_name = {};
  std::vector<Panel> panels = {};
};

/// A panel for the loss, each metric and the learning rate, with `speed` also
/// for the images per second. Of steps the training's numbers are smoothed,
/// with the numbers themselves behind them, and tests are points at the ends of
/// epochs.
RunCurves curves_of(const RunHistory& history, bool speed = false);

/// "Accuracy (%)" of "top1"; most metrics are called as they are.
std::string metric_title(std::string_view metric);

} // namespace lockstep::report
