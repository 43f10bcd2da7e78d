// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lockstep/base/strings.h"
#include "lockstep/report/html_text.h"
#include "lockstep/report/svg_text.h"

namespace lockstep::report {
namespace {

// Units: pixels. The axes of a panel lie `kLeft`, `kTop` from its corner.
constexpr double kPanelWidth = 340;
constexpr double kAxisWidth = 264;
constexpr double kAxisHeight = 200;
constexpr double kLeft = 58;
constexpr double kTop = 74;
constexpr double kHeight = 328;
constexpr double kMargin = 8;
constexpr std::size_t kMaxMarks = 30;

constexpr std::string_view kText = "#333333";
constexpr std::string_view kGrid = "#e4e4e4";

// Okabe and Ito's colours, the darker ones: legible on white.
struct CurveLook {
  std::string_view colour = {};
  std::string_view dashes = {};
};
constexpr std::array kCurveLooks{
    CurveLook{.colour = "#0072b2", .dashes = "none"},
    CurveLook{.colour = "#d55e00", .dashes = "7 4"},
    CurveLook{.colour = "#009e73", .dashes = "2 3"},
    CurveLook{.colour = "#cc79a7", .dashes = "9 3 2 3"},
};

// From numbers to pixels along one axis.
struct Scale {
  std::vector<double> ticks = {};
  double low = 0.0;
  double high = 1.0;
  double from = 0.0;
  double to = 0.0;

  [[nodiscard]] double operator()(double value) const {
    return from + (value - low) / (high - low) * (to - from);
  }
};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(const std::vector<double>& values) {
    for (const double value : values) {
      if (std::isfinite(value)) {
        low = std::min(low, value);
        high = std::max(high, value);
      }
    }
  }
  [[nodiscard]] bool is_empty() const {
    return low > high;
  }
  // Room around numbers that are too close to be told apart.
  void widen(double room) {
    if (high - low <= 1e-9 * std::abs(low)) {
      low -= room;
      high += room;
    }
  }
};

Scale x_scale(const Panel& panel) {
  Range range;
  for (const Curve& curve : panel.curves) {
    range.add(curve.x);
  }
  range = range.is_empty() ? Range{.low = 1.0, .high = 1.0} : range;
  range.widen(0.5);
  Scale scale{
      .low = range.low,
      .high = range.high,
      .from = kLeft,
      .to = kLeft + kAxisWidth};
  for (const double tick :
       axis_ticks(range.low, range.high, 6, /*whole=*/true)) {
    if (tick >= range.low && tick <= range.high) {
      scale.ticks.push_back(tick);
    }
  }
  return scale;
}

Scale y_scale(const Panel& panel) {
  Range range;
  for (const Curve& curve : panel.curves) {
    range.add(curve.y);
    range.add(curve.raw);
  }
  range = range.is_empty() ? Range{.low = 0.0, .high = 0.0} : range;
  const bool has_negative = range.low < 0.0;
  range.widen(range.low == 0.0 ? 1.0 : std::abs(range.low) * 0.1);
  range.low = has_negative ? range.low : std::max(range.low, 0.0);
  Scale scale{.from = kTop + kAxisHeight, .to = kTop};
  scale.ticks = axis_ticks(range.low, range.high, 5);
  scale.low = scale.ticks.front();
  scale.high = scale.ticks.back();
  return scale;
}

std::string
label(double x, double y, std::string_view anchor, std::string_view text) {
  return format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
      x,
      y,
      anchor,
      svg_text(text));
}

std::string grid_line(double x1, double y1, double x2, double y2) {
  return format(
      "<line class=\"grid\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
      "y2=\"{:.1f}\" "
      "stroke=\"{}\"/>\n",
      x1,
      y1,
      x2,
      y2,
      kGrid);
}

std::string draw_axes(const Scale& x, const Scale& y, std::string_view x_name) {
  std::string out;
  for (const double tick : y.ticks) {
    out += grid_line(x.from, y(tick), x.to, y(tick));
    out += label(x.from - 6, y(tick) + 4, "end", format("{:.6g}", tick));
  }
  for (const double tick : x.ticks) {
    out += grid_line(x(tick), y.from, x(tick), y.from + 4);
    out += label(x(tick), y.from + 18, "middle", format("{:.6g}", tick));
  }
  out += label((x.from + x.to) / 2, y.from + 36, "middle", x_name);
  return out;
}

std::string mark(double x, double y, std::size_t index) {
  return index % 2 == 0
             ? format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>\n", x, y)
             : format(
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"6\" "
                   "height=\"6\"/>\n",
                   x - 3,
                   y - 3);
}

std::string line_through(std::string_view points, const CurveLook& look) {
  return points.empty()
             ? std::string()
             : format(
                   "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" "
                   "stroke-width=\"2\" stroke-dasharray=\"{}\"/>\n",
                   points,
                   look.colour,
                   look.dashes);
}

// The same, thin and pale, behind a smoothed curve.
std::string pale_line(std::string_view points, const CurveLook& look) {
  return points.empty()
             ? std::string()
             : format(
                   "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" "
                   "stroke-opacity=\"0.35\"/>\n",
                   points,
                   look.colour);
}

using DrawLine = std::string (*)(std::string_view, const CurveLook&);

// Lines between numbers that are finite.
std::string lines_of(
    const std::vector<double>& xs,
    const std::vector<double>& ys,
    const Scale& x,
    const Scale& y,
    const CurveLook& look,
    DrawLine line) {
  std::string lines;
  std::string points;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (!std::isfinite(ys[i])) {
      lines += line(points, look);
      points.clear();
      continue;
    }
    points += format(
        "{}{:.1f},{:.1f}",
        points.empty() ? "" : " ",
        x(xs[i]),
        y(ys[i]));
  }
  return lines + line(points, look);
}

std::string draw_curve(
    const Curve& curve,
    const Scale& x,
    const Scale& y,
    std::size_t place) {
  const std::size_t index = curve.look.value_or(place);
  const CurveLook& look = kCurveLooks.at(index % kCurveLooks.size());
  std::string out = format("<g class=\"c{}\">\n", index % kCurveLooks.size());
  if (!curve.raw.empty()) {
    out += lines_of(curve.x, curve.raw, x, y, look, pale_line);
  }
  out += lines_of(curve.x, curve.y, x, y, look, line_through);
  if (curve.x.size() <= kMaxMarks && curve.raw.empty()) {
    out += format("<g fill=\"{}\">\n", look.colour);
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (std::isfinite(curve.y[i])) {
        out += mark(x(curve.x[i]), y(curve.y[i]), index);
      }
    }
    out += "</g>\n";
  }
  return out + "</g>\n";
}

// Above the axes, left to right: a piece of each curve and its name.
std::string draw_legend(const std::vector<Curve>& curves) {
  constexpr double kY = kTop - 14;
  constexpr double kSpacing = 92;
  std::string out;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const double x = kLeft + static_cast<double>(i) * kSpacing;
    const std::size_t index = curves[i].look.value_or(i);
    const CurveLook& look = kCurveLooks.at(index % kCurveLooks.size());
    out += format(
        "<g class=\"c{}\">\n{}<g fill=\"{}\">\n{}</g>\n</g>\n",
        index % kCurveLooks.size(),
        line_through(
            format("{:.1f},{:.1f} {:.1f},{:.1f}", x, kY, x + 28, kY),
            look),
        look.colour,
        mark(x + 14, kY, index));
    out += label(x + 34, kY + 4, "start", curves[i].name);
  }
  return out;
}

std::string panel_content(const Panel& panel, std::string_view x_name) {
  const Scale x = x_scale(panel);
  const Scale y = y_scale(panel);
  std::string out = format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" font-weight=\"bold\">{}</text>\n",
      kLeft,
      kTop - 30,
      svg_text(panel.title));
  out += draw_axes(x, y, x_name);
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    out += draw_curve(panel.curves[i], x, y, i);
  }
  return out + draw_legend(panel.curves);
}

// "train from 2.3 to 0.2", for those who hear a page.
std::string spoken(const Curve& curve) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  const auto first = std::ranges::find_if(curve.y, is_finite);
  if (first == curve.y.end()) {
    return curve.name + " without numbers";
  }
  const auto last = std::find_if(curve.y.rbegin(), curve.y.rend(), is_finite);
  return format("{} from {:.4g} to {:.4g}", curve.name, *first, *last);
}

} // namespace

std::string draw_panel(const Panel& panel, std::string_view x_name) {
  std::string description = format("{} by {}", panel.title, x_name);
  for (const Curve& curve : panel.curves) {
    description += "; " + spoken(curve);
  }
  return format(
      "<svg class=\"panel\" role=\"img\" aria-label=\"{}\" "
      "viewBox=\"0 {:.0f} {:.0f} {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"12\" fill=\"{}\">\n{}</svg>\n",
      html_text(description),
      kTop - 48,
      kPanelWidth,
      kHeight - kTop + 36,
      kText,
      panel_content(panel, x_name));
}

std::vector<double> smoothed(const std::vector<double>& y) {
  constexpr std::size_t kShare = 20;
  const std::size_t half = std::max<std::size_t>(1, y.size() / kShare / 2);
  std::vector<double> means(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    double sum = 0;
    double count = 0;
    const std::size_t end = std::min(y.size(), i + half + 1);
    for (std::size_t k = i - std::min(i, half); k < end; ++k) {
      if (std::isfinite(y[k])) {
        sum += y[k];
        ++count;
      }
    }
    means[i] = count > 0 ? sum / count : std::nan("");
  }
  return means;
}

std::vector<double> axis_ticks(double low, double high, int count, bool whole) {
  const double raw = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  constexpr std::array kSteps{1.0, 2.0, 5.0, 10.0};
  const auto fits = [&](double step) { return step * power >= raw * 0.999; };
  double step = *std::ranges::find_if(kSteps, fits) * power;
  if (whole) {
    step = std::max(step, 1.0);
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9);
  const double last = std::ceil(high / step - 1e-9);
  for (int i = 0; first + i <= last; ++i) {
    ticks.push_back((first + i) * step);
  }
  return ticks;
}

std::string draw_curves(
    std::string_view title,
    std::string_view x_name,
    std::span<const Panel> panels) {
  const double width =
      kPanelWidth * static_cast<double>(panels.size()) + 2 * kMargin;
  std::string out = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"{2}\">\n"
      "<title>{3}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{4:.0f}\" y=\"22\" font-size=\"14\">{3}</text>\n",
      width,
      kHeight,
      kText,
      svg_text(title),
      kLeft + kMargin);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    out += format(
        "<g transform=\"translate({:.0f} 0)\">\n{}</g>\n",
        kMargin + static_cast<double>(i) * kPanelWidth,
        panel_content(panels[i], x_name));
  }
  return out + "</svg>\n";
}

} // namespace lockstep::report
