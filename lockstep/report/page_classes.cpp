// SPDX-License-Identifier: BSD-3-Clause
//
// What the last test says of classes and samples.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "lockstep/base/strings.h"
#include "lockstep/report/confusion.h"
#include "lockstep/report/html_text.h"
#include "lockstep/report/page_sections.h"

namespace lockstep::report {
namespace {

constexpr std::size_t kMostShownRows = 20;
constexpr std::size_t kMostPairs = 12;
/// A larger matrix is below the table.
constexpr std::size_t kMostBeside = 20;
/// A larger matrix is told by its largest cells only.
constexpr std::size_t kMostDrawn = 128;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// A table of report.json.
struct NamedNumbers {
  std::string name = {};
  std::vector<std::string> columns = {};
  std::vector<std::string> rows = {};
  std::vector<std::vector<double>> values = {};
};

std::optional<NamedNumbers> read_table(const PageJson& json) {
  NamedNumbers table{.name = text_in(json, "name")};
  for (const PageJson& column : member_of(json, "columns")) {
    table.columns.push_back(plain_text(column));
  }
  for (const PageJson& row : member_of(json, "rows")) {
    table.rows.push_back(text_in(row, "name"));
    std::vector<double> values;
    for (const PageJson& value : member_of(row, "values")) {
      values.push_back(value.is_number() ? value.get<double>() : kNoNumber);
    }
    values.resize(table.columns.size(), kNoNumber);
    table.values.push_back(std::move(values));
  }
  return table.rows.empty() || table.columns.empty() ? std::nullopt
                                                     : std::optional(table);
}

/// What the rows of a table are.
struct RowKind {
  std::string_view table = {};
  std::string_view row = {};
  std::string_view title = {};
};
constexpr std::array kRowKinds{
    RowKind{"per_class", "class", "Classes"},
    RowKind{"confusion", "class", "Classes"},
    RowKind{"per_label", "label", "Labels"},
    RowKind{"per_output", "value", "Values"},
    RowKind{"per_point", "point", "Key points"},
    RowKind{"", "", "Details"}, // of a program's own
};

const RowKind& kind_of(std::string_view table) {
  const auto* const found =
      std::ranges::find(kRowKinds, table, &RowKind::table);
  return found == kRowKinds.end() ? kRowKinds.back() : *found;
}

PageTable page_table(
    const NamedNumbers& numbers,
    std::span<const std::size_t> order,
    std::string caption) {
  PageTable table{
      .caption = std::move(caption),
      .heads = {std::string(kind_of(numbers.name).row)}};
  for (const std::string& column : numbers.columns) {
    table.heads.push_back(html_text(column));
  }
  for (const std::size_t row : order) {
    auto& cells = table.rows.emplace_back();
    cells.push_back(foreign(numbers.rows[row]));
    for (const double value : numbers.values[row]) {
      cells.push_back(number_text(value));
    }
  }
  return table;
}

std::string rows_html(const NamedNumbers& numbers) {
  std::vector<std::size_t> order(numbers.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::string all = table_html(page_table(
      numbers,
      order,
      numbers.rows.empty() || kind_of(numbers.name).row.empty()
          ? html_text(numbers.name)
          : format("numbers per {}", kind_of(numbers.name).row)));
  if (order.size() <= kMostShownRows) {
    return all;
  }
  // What nothing was counted of is not the worst.
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const double first = numbers.values[a][0];
    const double second = numbers.values[b][0];
    return !std::isnan(first) && (std::isnan(second) || first < second);
  });
  order.resize(kMostShownRows);
  return table_html(page_table(
             numbers,
             order,
             format(
                 "the {} of {} with the lowest {}",
                 kMostShownRows,
                 numbers.rows.size(),
                 html_text(numbers.columns.front())))) +
         format(
             "<details><summary>all {}</summary>\n{}</details>\n",
             numbers.rows.size(),
             all);
}

// The most frequent mistakes first.
std::string pairs_html(const NamedNumbers& counts) {
  struct Pair {
    double count = 0;
    std::size_t row = 0;
    std::size_t column = 0;
  };
  std::vector<Pair> pairs;
  for (std::size_t row = 0; row < counts.rows.size(); ++row) {
    for (std::size_t column = 0; column < counts.columns.size(); ++column) {
      if (const double count = counts.values[row][column];
          row != column && count > 0) {
        pairs.push_back({.count = count, .row = row, .column = column});
      }
    }
  }
  if (pairs.empty()) {
    return "<p>No class was taken for another one.</p>\n";
  }
  std::ranges::stable_sort(pairs, std::ranges::greater(), &Pair::count);
  pairs.resize(std::min(pairs.size(), kMostPairs));
  PageTable table{
      .caption = "most often confused",
      .heads = {"target", "taken for", "times"},
      .numbers_from = 2};
  for (const Pair& pair : pairs) {
    table.rows.push_back(
        {foreign(counts.rows[pair.row]),
         foreign(counts.columns[pair.column]),
         number_text(pair.count)});
  }
  return table_html(table);
}

std::string confusion_html(const NamedNumbers& counts) {
  std::string out;
  const bool is_square = counts.rows.size() == counts.columns.size();
  if (is_square && counts.rows.size() <= kMostDrawn) {
    out = format(
        "<div class=\"scroll{}\" tabindex=\"0\" role=\"region\" "
        "aria-label=\"confusion matrix; the numbers that matter most are in "
        "the table of classes and in that of confusions\">\n{}</div>\n",
        counts.rows.size() > kMostBeside ? " fit" : "",
        draw_confusion("", counts.rows, counts.values));
  }
  return "<h3>Confusion matrix</h3>\n" + out + pairs_html(counts);
}

bool is_png_uri(std::string_view text) {
  constexpr std::string_view kHead = "data:image/png;base64,";
  const auto is_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '+' || c == '/' || c == '=';
  };
  return text.starts_with(kHead) &&
         std::ranges::all_of(text.substr(kHead.size()), is_digit);
}

std::string sample_html(const PageJson& sample) {
  const std::string picture = text_in(sample, "picture");
  const std::string target = text_in(sample, "target");
  const std::string output = text_in(sample, "output");
  const PageJson& is_right = member_of(sample, "right");
  std::string out = "<li>";
  // Only what this program wrote: nothing is fetched from elsewhere.
  if (is_png_uri(picture)) {
    out += format(
        R"(<img alt="{}" src="{}">)",
        html_text(format("sample {}", text_in(sample, "name"))),
        picture);
  }
  if (is_right.is_boolean()) {
    const bool right = is_right.get<bool>();
    out += format(
        "<span class=\"mark {0}\">{1} {0}</span><br>",
        right ? "right" : "wrong",
        right ? "\u2713" : "\u2717");
  }
  if (!output.empty()) {
    out += format("predicted {}<br>", foreign(output));
  }
  if (!target.empty()) {
    out += format("target {}", foreign(target));
  }
  return out + format(
                   "<span class=\"name\">{}</span></li>\n",
                   foreign(text_in(sample, "name")));
}

// Of samples that are no pictures.
std::string rows_of_samples(const PageJson& details, const PageJson& samples) {
  PageTable table{
      .caption = format(
          "of the test, evenly spread over it, after epoch {}",
          html_text(text_in(details, "epoch"))),
      .heads = {"sample", "target", "predicted"},
      .numbers_from = 99};
  for (const PageJson& sample : samples) {
    table.rows.push_back(
        {foreign(text_in(sample, "name")),
         foreign(text_in(sample, "target")),
         foreign(text_in(sample, "output"))});
  }
  return section_html("samples", "Samples", table_html(table));
}

} // namespace

std::string classes_section(const PageJson& details) {
  std::string tables;
  std::string matrix;
  std::size_t most = 0;
  std::string_view title;
  for (const PageJson& json : member_of(details, "tables")) {
    if (const auto table = read_table(json)) {
      most = std::max(most, table->rows.size());
      title = title.empty() ? kind_of(table->name).title : title;
      if (table->name == "confusion") {
        matrix += confusion_html(*table);
      } else {
        tables += rows_html(*table);
      }
    }
  }
  if (tables.empty() && matrix.empty()) {
    return {};
  }
  return section_html(
      "classes",
      title,
      format(
          "<p class=\"dim\">Of the test after epoch {}.</p>\n"
          "<div class=\"{}\">\n<div>\n{}</div>\n<div>\n{}</div>\n</div>\n",
          html_text(text_in(details, "epoch")),
          most > kMostBeside ? "rows" : "columns",
          tables,
          matrix));
}

std::string samples_section(const PageJson& details) {
  const PageJson& samples = member_of(details, "samples");
  const bool has_pictures =
      std::ranges::any_of(samples, [](const PageJson& sample) {
        return !text_in(sample, "picture").empty();
      });
  if (!samples.empty() && !has_pictures) {
    return rows_of_samples(details, samples);
  }
  std::string items;
  for (const PageJson& sample : samples) {
    items += sample_html(sample);
  }
  if (items.empty()) {
    return {};
  }
  const std::string note = text_in(details, "samples_note");
  const bool is_wide = text_in(details, "samples_wide") == "true";
  return section_html(
      "samples",
      "Samples",
      format(
          "<p class=\"dim\">Samples of the test, evenly spread over it, after "
          "epoch {}{}{}.</p>\n<ul class=\"samples{}\">\n{}</ul>\n",
          html_text(text_in(details, "epoch")),
          note.empty() ? "" : ": ",
          html_text(note),
          is_wide ? " wide" : "",
          items));
}

} // namespace lockstep::report
