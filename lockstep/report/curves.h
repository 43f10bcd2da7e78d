// SPDX-License-Identifier: BSD-3-Clause
//
// Curves as an SVG file: panels side by side, for people and any browser.
//   std::string svg = draw_curves("runs/a", "epoch",
//       {{"loss", {{"train", epochs, losses}, {"test", epochs, others}}}});
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::report {

/// Numbers over x; both have the same length. A number that is not finite
/// leaves a gap.
struct Curve {
  std::string name = {};
  std::vector<double> x = {};
  std::vector<double> y = {};
  /// What `y` was smoothed from, drawn thin and pale behind it; may be empty.
  std::vector<double> raw = {};
  /// Which colour, dashes and marks it has, from 0 on; none: those of its place
  /// among the curves.
  std::optional<std::size_t> look = {};
};

/// One pair of axes. At most four curves can be told apart.
struct Panel {
  std::string title = {};
  std::vector<Curve> curves = {};
};

/// One panel as an SVG element for a page, which may colour it: texts have no
/// class, "grid" are lines behind, "c0" to "c3" what belongs to a curve.
std::string draw_panel(const Panel& panel, std::string_view x_name);

/// The averages of `y` over a window of a twentieth of it, which is cut off at
/// both ends; what is not finite is left out.
std::vector<double> smoothed(const std::vector<double>& y);

/// A whole SVG file. Colours can be told apart by colour-blind people; each
/// curve also has dashes and marks of its own.
std::string draw_curves(
    std::string_view title,
    std::string_view x_name,
    std::span<const Panel> panels);

/// Round numbers from `low` to `high` or a little beyond, about `count` of
/// them, 1, 2 or 5 times a power of ten apart; with `whole` at least 1 apart.
std::vector<double>
axis_ticks(double low, double high, int count, bool whole = false);

} // namespace lockstep::report
