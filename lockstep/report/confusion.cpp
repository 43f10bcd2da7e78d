// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/confusion.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "lockstep/base/strings.h"
#include "lockstep/report/svg_text.h"

namespace lockstep::report {
namespace {

constexpr std::size_t kMostNumbers = 40;
constexpr std::string_view kInk = "#333333";
// Units: pixels.
constexpr double kEdge = 16;
constexpr double kTitle = 56;
constexpr double kLetter = 7;
constexpr double kWideLetter = 12;
constexpr double kLongestName = 180;

// Units: pixels, roughly: letters behind ASCII and Latin are twice as wide.
double width_of(std::string_view text) {
  double width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes =
        std::max<std::size_t>(utf8_length(text.substr(i)), 1);
    width += bytes >= 3 ? kWideLetter : kLetter;
    i += bytes;
  }
  return width;
}

// Cut where it is too long for its place.
std::string short_name(std::string_view name) {
  std::string text;
  double width = 0;
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t bytes =
        std::max<std::size_t>(utf8_length(name.substr(i)), 1);
    width += bytes >= 3 ? kWideLetter : kLetter;
    if (width > kLongestName) {
      return text + "...";
    }
    text += name.substr(i, bytes);
    i += bytes;
  }
  return text;
}

// The darkest cell; others let the paper shine through, so that steps are equal
// to the eye.
constexpr std::string_view kDark = "#084081";

// Where things are.
struct Layout {
  std::size_t classes = 0;
  /// Of a cell.
  double side = 0;
  double left = 0;
  double top = 0;

  [[nodiscard]] double x(std::size_t column) const {
    return left + static_cast<double>(column) * side;
  }
  [[nodiscard]] double y(std::size_t row) const {
    return top + static_cast<double>(row) * side;
  }
  [[nodiscard]] double extent() const {
    return static_cast<double>(classes) * side;
  }
};

Layout layout_of(
    const std::vector<std::string>& names,
    const std::vector<std::vector<double>>& counts) {
  double name_width = 0;
  for (const std::string& name : names) {
    name_width = std::max(name_width, width_of(name));
  }
  double largest = 0;
  for (const auto& row : counts) {
    for (const double count : row) {
      largest = std::max(largest, count);
    }
  }
  const double number_width = width_of(format("{:.0f}", largest));
  constexpr double kSmallest = 28;
  constexpr double kTiny = 10;
  Layout layout{.classes = names.size()};
  layout.side = names.size() <= kMostNumbers
                    ? std::max(kSmallest, number_width + 10)
                    : kTiny;
  layout.left = kEdge + 22 + name_width + 8;
  layout.top = kTitle + 18 + name_width + 8;
  return layout;
}

std::string draw_cells(
    const Layout& layout,
    const std::vector<std::vector<double>>& counts) {
  constexpr double kDarkShare = 0.5;
  const bool has_numbers = layout.classes <= kMostNumbers;
  std::string out;
  for (std::size_t row = 0; row < counts.size(); ++row) {
    const double all =
        std::accumulate(counts[row].begin(), counts[row].end(), 0.0);
    for (std::size_t column = 0; column < counts[row].size(); ++column) {
      const double count = counts[row][column];
      const double share = all > 0 ? count / all : 0;
      if (count <= 0) {
        continue; // as the paper
      }
      out += format(
          "<rect class=\"cell\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
          "height=\"{:.1f}\" fill=\"{}\" fill-opacity=\"{:.3f}\"/>\n",
          layout.x(column),
          layout.y(row),
          layout.side,
          layout.side,
          kDark,
          share);
      if (has_numbers) {
        out += format(
            "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" "
            "text-anchor=\"middle\" fill=\"{}\">{:.0f}</text>\n",
            share > kDarkShare ? "strong" : "weak",
            layout.x(column) + layout.side / 2,
            layout.y(row) + layout.side / 2 + 4,
            share > kDarkShare ? "white" : kInk,
            count);
      }
    }
  }
  return out;
}

std::string draw_names(
    const Layout& layout,
    const std::vector<std::string>& names) {
  const bool is_tiny = layout.classes > kMostNumbers;
  std::string out = format("<g font-size=\"{}\">\n", is_tiny ? 8 : 12);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double middle = layout.side / 2 + (is_tiny ? 3 : 4);
    out += format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        layout.left - 8,
        layout.y(i) + middle,
        svg_text(names[i]));
    out += format(
        "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</text>\n",
        layout.x(i) + middle,
        layout.top - 8,
        svg_text(names[i]));
  }
  return out + "</g>\n";
}

std::string draw_frame(const Layout& layout) {
  return format(
      "<rect class=\"frame\" x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" "
      "height=\"{2:.1f}\" fill=\"none\" stroke=\"{3}\"/>\n"
      "<text x=\"{4:.1f}\" y=\"{5:.1f}\" text-anchor=\"middle\" "
      "font-weight=\"bold\">predicted</text>\n"
      "<text transform=\"translate({6:.1f} {7:.1f}) rotate(-90)\" "
      "text-anchor=\"middle\" font-weight=\"bold\">target</text>\n",
      layout.left,
      layout.top,
      layout.extent(),
      kInk,
      layout.left + layout.extent() / 2,
      kTitle,
      kEdge + 12,
      layout.top + layout.extent() / 2);
}

} // namespace

std::string draw_confusion(
    std::string_view title,
    std::span<const std::string> names,
    const std::vector<std::vector<double>>& counts) {
  std::vector<std::string> shorter;
  shorter.reserve(names.size());
  for (const std::string& name : names) {
    shorter.push_back(short_name(name));
  }
  const Layout layout = layout_of(shorter, counts);
  const double width = std::max(
      layout.left + layout.extent() + kEdge,
      2 * kEdge + width_of(title) * 1.2);
  return format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
             "font-family=\"sans-serif\" font-size=\"12\" fill=\"{2}\">\n"
             "<title>{3}</title>\n"
             "<rect class=\"paper\" width=\"100%\" height=\"100%\" "
             "fill=\"white\"/>\n"
             "<text x=\"{4:.0f}\" y=\"26\" font-size=\"14\">{3}</text>\n",
             width,
             layout.top + layout.extent() + kEdge,
             kInk,
             svg_text(title),
             kEdge) +
         draw_cells(layout, counts) + draw_names(layout, shorter) +
         draw_frame(layout) + "</svg>\n";
}

} // namespace lockstep::report
