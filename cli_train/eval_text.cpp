// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/eval_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/train/inference/outputs.h"

namespace lockstep::cli_train {
namespace {

using train::OutputKind;
using Row = std::vector<std::string>;

constexpr std::string_view kConfusionTable = "confusion";
constexpr std::size_t kMostShown = 20;
constexpr std::size_t kMostPairs = 10;

// Counts as they are, shares with four digits.
std::string number_text(double value) {
  constexpr double kExact = 9007199254740992.0; // 2^53
  if (std::isnan(value)) {
    return "-";
  }
  const bool is_whole = value == std::floor(value) && std::abs(value) < kExact;
  return is_whole && std::abs(value) > 1 ? format("{:.0f}", value)
                                         : format("{:.4f}", value);
}

std::string count_text(double value) {
  return format("{:.0f}", value);
}

// Units: columns of a terminal. Letters of East Asia take two: Unicode's East
// Asian Width W and F, by blocks.
int columns_of(std::string_view text) {
  struct Block {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
  };
  constexpr std::array kWide{
      Block{0x1100, 0x115f},
      Block{0x2e80, 0xa4cf},
      Block{0xac00, 0xd7a3},
      Block{0xf900, 0xfaff},
      Block{0xfe30, 0xfe6f},
      Block{0xff00, 0xff60},
      Block{0x1f300, 0x1f64f},
      Block{0x20000, 0x3fffd}};
  int columns = display_width(text);
  for (std::size_t bytes = 0; !text.empty(); text.remove_prefix(bytes)) {
    bytes = std::max<std::size_t>(utf8_length(text), 1);
    // What the first byte of so many has, and six bits of each other.
    std::uint32_t code = static_cast<unsigned char>(text[0]);
    code &= bytes == 1 ? 0x7fU : 0xffU >> (bytes + 1);
    for (const char c : text.substr(1, bytes - 1)) {
      code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
    }
    columns += std::ranges::any_of(kWide, [code](const Block& block) {
      return code >= block.first && code <= block.last;
    });
  }
  return columns;
}

// Columns as wide as they must be, the first to the left.
std::string aligned(const std::vector<Row>& rows) {
  std::vector<int> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  }
  const auto spaces = [](int count) {
    return std::string(static_cast<std::size_t>(count), ' ');
  };
  std::string text;
  for (const Row& row : rows) {
    std::string line = row[0] + spaces(widths[0] - columns_of(row[0]));
    for (std::size_t i = 1; i < row.size(); ++i) {
      line += spaces(widths[i] - columns_of(row[i]) + 2) + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string metrics_text(const EvalAnswer& answer) {
  std::vector<Row> rows{{"loss", format("{:.4f}", answer.found.score.loss)}};
  rows.reserve(answer.found.infos.size() + 1);
  for (std::size_t i = 0; i < answer.found.infos.size(); ++i) {
    const MetricInfo& info = answer.found.infos[i];
    const double value = answer.found.score.metrics[i].value;
    rows.push_back(
        {info.name,
         std::isnan(value)  ? "-"
         : info.unit == "%" ? format("{:.2f}", value)
                            : format("{:.4f}", value)});
  }
  return aligned(rows);
}

std::string table_text(const MetricTable& table, std::string (*cell)(double)) {
  std::vector<Row> rows{{table.name}};
  rows.front().insert(
      rows.front().end(),
      table.columns.begin(),
      table.columns.end());
  for (const MetricRow& row : table.rows) {
    Row& line = rows.emplace_back(Row{escape(row.name)});
    for (const double value : row.values) {
      line.push_back(cell(value));
    }
  }
  for (std::string& name : rows.front()) {
    name = escape(name);
  }
  return aligned(rows);
}

// "cat taken for dog: 12", the most frequent first.
std::string pairs_text(const MetricTable& table) {
  struct Pair {
    double count = 0;
    std::size_t row = 0;
    std::size_t column = 0;
  };
  std::vector<Pair> pairs;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const double count = table.rows[row].values[column];
      if (row != column && count > 0) {
        pairs.push_back({.count = count, .row = row, .column = column});
      }
    }
  }
  std::ranges::stable_sort(pairs, std::ranges::greater(), &Pair::count);
  pairs.resize(std::min(pairs.size(), kMostPairs));
  std::string text = "most often confused\n";
  for (const Pair& pair : pairs) {
    text += format(
        "  {} taken for {}: {:.0f}\n",
        escape(table.rows[pair.row].name),
        escape(table.columns[pair.column]),
        pair.count);
  }
  return text;
}

std::string confusion_text(const MetricTable& table) {
  return table.columns.size() <= kMostShown
             ? "rows: targets, columns: predictions\n" +
                   table_text(table, count_text)
             : pairs_text(table);
}

std::string classes_in(
    const at::Tensor& mask,
    const train::TrainedData& trained) {
  std::vector<bool> is_there(static_cast<std::size_t>(trained.num_classes));
  const at::Tensor numbers = mask.to(at::kLong).contiguous();
  const auto* number = numbers.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < numbers.numel(); ++i) {
    if (number[i] >= 0 && number[i] < trained.num_classes) {
      is_there[static_cast<std::size_t>(number[i])] = true;
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < is_there.size(); ++i) {
    if (is_there[i]) {
      names.push_back(trained.name_of(static_cast<std::int64_t>(i)));
    }
  }
  return join(names, ";");
}

std::string labels_in(
    const at::Tensor& is_set,
    const train::TrainedData& trained) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < is_set.numel(); ++i) {
    if (is_set[i].item<bool>()) {
      names.push_back(trained.name_of(i));
    }
  }
  return join(names, ";");
}

std::string values_in(const at::Tensor& values) {
  std::vector<std::string> numbers;
  const at::Tensor row = values.reshape({-1});
  numbers.reserve(static_cast<std::size_t>(row.numel()));
  for (std::int64_t i = 0; i < row.numel(); ++i) {
    numbers.push_back(shortest(row[i].item<float>()));
  }
  return join(numbers, ";");
}

Json table_json(const MetricTable& table) {
  Json rows = Json::array();
  for (const MetricRow& row : table.rows) {
    Json line = Json::object();
    line.set("name", row.name).set("values", Json::array(row.values));
    rows.push(std::move(line));
  }
  Json json = Json::object();
  json.set("name", table.name)
      .set("columns", Json::array(table.columns))
      .set("rows", std::move(rows));
  return json;
}

} // namespace

const MetricTable* find_table(
    const train::Evaluation& found,
    std::string_view name) {
  const auto table = std::ranges::find(found.tables, name, &MetricTable::name);
  return table == found.tables.end() ? nullptr : &*table;
}

std::string target_text(
    const train::WorstSample& sample,
    const train::TrainedData& trained) {
  switch (train::output_kind(trained)) {
    case OutputKind::kClasses:
      return trained.name_of(sample.target.item<std::int64_t>());
    case OutputKind::kMasks:
      return classes_in(sample.target, trained);
    case OutputKind::kLabels:
      return labels_in(sample.target.gt(0), trained);
    case OutputKind::kValues:
      return values_in(sample.target);
    case OutputKind::kMaps:
      break;
  }
  return "";
}

std::string prediction_text(
    const train::WorstSample& sample,
    const train::TrainedData& trained) {
  switch (train::output_kind(trained)) {
    case OutputKind::kClasses:
      return trained.name_of(sample.output.argmax().item<std::int64_t>());
    case OutputKind::kMasks:
      return classes_in(sample.output.argmax(0), trained);
    case OutputKind::kLabels:
      return labels_in(sample.output.gt(0), trained);
    case OutputKind::kValues:
      return values_in(sample.output);
    case OutputKind::kMaps:
      break;
  }
  return "";
}

std::string eval_text(const EvalAnswer& answer) {
  std::string text = format(
      "{}: {}, {}, epoch {}\n{} of {}{} ({})\n",
      answer.file,
      answer.model,
      answer.task,
      answer.epoch,
      counted(static_cast<std::uint64_t>(answer.found.samples), "sample"),
      answer.data,
      answer.data_dir.empty() ? "" : " " + answer.data_dir,
      answer.part == "all" ? "all parts" : answer.part + " part");
  for (const std::string& note : answer.notes) {
    text += note + "\n";
  }
  text += "\n" + metrics_text(answer);
  for (const MetricTable& table : answer.found.tables) {
    text +=
        "\n" + (table.name == kConfusionTable ? confusion_text(table)
                                              : table_text(table, number_text));
  }
  return text;
}

Json eval_json(const EvalAnswer& answer) {
  const train::Evaluation& found = answer.found;
  Json metrics = Json::array();
  for (std::size_t i = 0; i < found.infos.size(); ++i) {
    const MetricInfo& info = found.infos[i];
    Json metric = Json::object();
    metric.set("name", info.name)
        .set("value", found.score.metrics[i].value)
        .set("unit", info.unit)
        .set("better", info.better == Better::kHigher ? "higher" : "lower");
    metrics.push(std::move(metric));
  }
  Json tables = Json::array();
  for (const MetricTable& table : found.tables) {
    tables.push(table_json(table));
  }
  Json worst = Json::array();
  for (const train::WorstSample& sample : found.worst) {
    Json row = Json::object();
    row.set("sample", sample.name)
        .set("target", target_text(sample, answer.trained))
        .set("prediction", prediction_text(sample, answer.trained))
        .set("loss", sample.loss);
    worst.push(std::move(row));
  }
  Json result = Json::object();
  result.set("checkpoint", answer.file)
      .set("model", answer.model)
      .set("epoch", answer.epoch)
      .set("task", answer.task)
      .set("data", answer.data)
      .set("data_dir", answer.data_dir)
      .set("part", answer.part)
      .set("samples", found.samples)
      .set("loss", found.score.loss)
      .set("notes", Json::array(answer.notes))
      .set("metrics", std::move(metrics))
      .set("tables", std::move(tables))
      .set("worst", std::move(worst));
  return result;
}

} // namespace lockstep::cli_train
