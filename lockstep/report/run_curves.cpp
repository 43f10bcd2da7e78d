// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/run_curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/run_names.h"

namespace lockstep::report {
namespace {

using train::kEpochColumn;
using train::kLossName;
using train::kRateColumn;
using train::kTestPrefix;
using train::kTrainPrefix;

/// As many points make a curve.
constexpr std::size_t kEnoughEpochs = 5;
/// From so many on steps are smoothed.
constexpr std::size_t kEnoughSteps = 12;
constexpr std::size_t kTestLook = 1;
constexpr std::string_view kStepColumn = "step";
constexpr std::string_view kSpeedColumn = "images_per_s";

void add_curve(
    Panel& panel,
    std::string name,
    const NumberTable& table,
    std::string_view x,
    std::string_view y) {
  // What a run does not measure has no curve.
  if (table.has(y) && table.has(x)) {
    panel.curves.push_back(
        {.name = std::move(name), .x = table.column(x), .y = table.column(y)});
  }
}

// A curve of a step's numbers, which jump.
void add_smoothed(Panel& panel, std::string name, Curve curve) {
  const bool has_numbers = std::ranges::any_of(curve.y, [](double value) {
    return std::isfinite(value);
  });
  if (!has_numbers) {
    return;
  }
  curve.name = std::move(name);
  if (curve.y.size() >= kEnoughSteps) {
    curve.raw = std::exchange(curve.y, smoothed(curve.y));
  }
  panel.curves.push_back(std::move(curve));
}

void add_panel(std::vector<Panel>& panels, Panel panel) {
  if (!panel.curves.empty()) {
    panels.push_back(std::move(panel));
  }
}

Panel pair_panel(
    const RunHistory& history,
    std::string title,
    std::string_view name,
    bool over_steps) {
  Panel panel{.title = std::move(title)};
  const NumberTable& epochs = history.epochs();
  const NumberTable& steps = history.steps();
  const std::string_view x = over_steps ? kStepColumn : kEpochColumn;
  if (over_steps) {
    add_smoothed(
        panel,
        "train",
        {.x = steps.column(kStepColumn), .y = steps.column(name)});
  } else {
    add_curve(panel, "train", epochs, x, format("{}{}", kTrainPrefix, name));
  }
  add_curve(panel, "test", epochs, x, format("{}{}", kTestPrefix, name));
  if (!panel.curves.empty() && panel.curves.back().name == "test") {
    panel.curves.back().look = kTestLook; // also where it is alone
  }
  return panel;
}

// Of each logged step.
std::vector<double> rates_of(const NumberTable& steps) {
  std::vector<double> rates = steps.column("samples");
  const std::vector<double> seconds = steps.column("seconds");
  for (std::size_t i = 0; i < std::min(rates.size(), seconds.size()); ++i) {
    rates[i] = seconds[i] > 0 ? rates[i] / seconds[i] : std::nan("");
  }
  return seconds.size() == rates.size() ? rates : std::vector<double>();
}

// What tests measure, or else the training, but for the loss.
std::vector<std::string> metrics_of(const NumberTable& epochs) {
  for (const std::string_view prefix : {kTestPrefix, kTrainPrefix}) {
    std::vector<std::string> metrics;
    for (const std::string& name : epochs.names()) {
      if (name.starts_with(prefix) && name.substr(prefix.size()) != kLossName) {
        metrics.push_back(name.substr(prefix.size()));
      }
    }
    if (!metrics.empty()) {
      return metrics;
    }
  }
  return {};
}

} // namespace

std::string metric_title(std::string_view metric) {
  if (metric == "top1") {
    return "Accuracy (%)";
  }
  const bool is_top = metric.starts_with("top") &&
                      parse_number<std::int64_t>(metric.substr(3)).has_value();
  return is_top ? format("Top-{} accuracy (%)", metric.substr(3))
                : std::string(metric);
}

RunCurves curves_of(const RunHistory& history, bool speed) {
  const NumberTable& epochs = history.epochs();
  const NumberTable& steps = history.steps();
  const bool over_steps =
      epochs.rows() < kEnoughEpochs && steps.rows() > epochs.rows();
  const std::string_view x = over_steps ? kStepColumn : kEpochColumn;
  RunCurves curves{.x_name = std::string(x)};
  add_panel(curves.panels, pair_panel(history, "Loss", kLossName, over_steps));
  for (const std::string& metric : metrics_of(epochs)) {
    add_panel(
        curves.panels,
        pair_panel(history, metric_title(metric), metric, over_steps));
  }
  Panel rate{.title = "Learning rate"};
  add_curve(
      rate,
      over_steps ? "step" : "last step",
      over_steps ? steps : epochs,
      x,
      kRateColumn);
  add_panel(curves.panels, std::move(rate));
  if (speed) {
    Panel images{.title = "Images per second"};
    if (over_steps) {
      add_smoothed(
          images,
          "train",
          {.x = steps.column(kStepColumn), .y = rates_of(steps)});
    } else {
      add_curve(images, "train", epochs, x, kSpeedColumn);
    }
    add_panel(curves.panels, std::move(images));
  }
  return curves;
}

} // namespace lockstep::report
