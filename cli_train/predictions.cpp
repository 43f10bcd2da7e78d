// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/predictions.h"

#include <algorithm>
#include <numeric>

#include <ATen/ops/zeros.h>

#include "lockstep/base/json.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::cli_train {
namespace {

using train::OutputKind;

bool has_ranking(const PredictionOptions& options) {
  return options.kind == OutputKind::kClasses ||
         (options.kind == OutputKind::kLabels && options.top > 0);
}

std::size_t ranks_of(const PredictionOptions& options) {
  const auto top =
      static_cast<std::size_t>(std::max<std::int64_t>(options.top, 1));
  return std::min(top, options.names.size());
}

// Numbers of the highest scores; the first of equal ones comes first.
std::vector<std::size_t> best_of(
    std::span<const float> scores,
    std::size_t count) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return train::is_above(scores[a], scores[b]);
  });
  order.resize(std::min(count, order.size()));
  return order;
}

// Shape: [texts, longest] uint8, with zeros behind.
at::Tensor text_rows(const std::vector<std::string>& texts) {
  std::size_t longest = 1;
  for (const std::string& text : texts) {
    longest = std::max(longest, text.size());
  }
  at::Tensor rows = at::zeros(
      {std::ssize(texts), static_cast<std::int64_t>(longest)},
      at::kByte);
  auto* row = rows.mutable_data_ptr<std::uint8_t>();
  for (const std::string& text : texts) {
    std::ranges::copy(text, row);
    row += longest;
  }
  return rows;
}

} // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string field = "\"";
  for (const char c : text) {
    field += c == '"' ? "\"\"" : std::string(1, c);
  }
  return field + "\"";
}

std::string csv_header(const PredictionOptions& options) {
  std::string header = "path";
  if (!has_ranking(options)) {
    for (const std::string& name : options.names) {
      header += "," + csv_field(name);
    }
    return header + "\n";
  }
  for (std::size_t i = 1; i <= ranks_of(options); ++i) {
    header += i == 1 ? std::string(",class,score")
                     : format(",class_{0},score_{0}", i);
  }
  return header + "\n";
}

std::string csv_row(
    const PredictionOptions& options,
    const std::string& path,
    std::span<const float> scores) {
  std::string row = csv_field(path);
  if (!has_ranking(options)) {
    for (const float score : scores) {
      row += "," + shortest(score);
    }
    return row + "\n";
  }
  for (const std::size_t i : best_of(scores, ranks_of(options))) {
    row += format(",{},{}", csv_field(options.names[i]), shortest(scores[i]));
  }
  return row + "\n";
}

std::string json_row(
    const PredictionOptions& options,
    const std::string& path,
    std::span<const float> scores) {
  Json row = Json::object();
  row.set("path", path);
  if (has_ranking(options)) {
    Json best = Json::array();
    for (const std::size_t i : best_of(scores, ranks_of(options))) {
      Json one = Json::object();
      one.set("class", options.names[i]).set("score", scores[i]);
      best.push(std::move(one));
    }
    row.set("predictions", std::move(best));
    return row.dump() + "\n";
  }
  // A list: names of a table's columns may be equal.
  Json all = Json::array();
  const bool has_values = options.kind == OutputKind::kValues;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    Json one = Json::object();
    one.set(has_values ? "name" : "class", options.names[i])
        .set(has_values ? "value" : "score", scores[i]);
    all.push(std::move(one));
  }
  row.set(has_values ? "values" : "predictions", std::move(all));
  return row.dump() + "\n";
}

void write_npz(
    const PredictionOptions& options,
    const std::vector<std::string>& paths,
    const at::Tensor& scores,
    const std::string& file,
    FileSystem& fs) {
  ValueBuilder builder;
  ckpt::save(
      file,
      ckpt::Value::dict(
          {{"scores", builder.tensor(scores)},
           {"paths", builder.tensor(text_rows(paths))},
           {"names", builder.tensor(text_rows(options.names))}}),
      {.format = "npz"},
      fs)
      .value();
}

} // namespace lockstep::cli_train
