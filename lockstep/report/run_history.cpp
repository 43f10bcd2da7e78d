// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/run_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

namespace lockstep::report {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostSteps = 4096;

// Of what is finite.
double mean_of(const std::vector<double>& values) {
  double sum = 0;
  double count = 0;
  for (const double value : values) {
    if (std::isfinite(value)) {
      sum += value;
      ++count;
    }
  }
  return count > 0 ? sum / count : kNone;
}

// Texts, also "nan" and "inf", are no numbers that can be drawn.
std::optional<double> number_of(const nlohmann::ordered_json& value) {
  if (value.is_number()) {
    return value.get<double>();
  }
  if (value.is_boolean()) {
    return value.get<bool>() ? 1.0 : 0.0;
  }
  return std::nullopt;
}

} // namespace

void NumberTable::add(const Row& row) {
  for (const auto& [name, value] : row) {
    auto found = std::ranges::find(
        columns_,
        name,
        &std::pair<std::string, std::vector<double>>::first);
    if (found == columns_.end()) {
      columns_.emplace_back(name, std::vector<double>(rows_, kNone));
      found = columns_.end() - 1;
    }
    if (found->second.size() == rows_) { // the first of two equal names
      found->second.push_back(value);
    }
  }
  ++rows_;
  for (auto& [_, values] : columns_) {
    values.resize(rows_, kNone);
  }
}

void NumberTable::halve() {
  for (auto& [_, values] : columns_) {
    std::vector<double> half;
    half.reserve((values.size() + 1) / 2);
    for (std::size_t i = 0; i < values.size(); i += 2) {
      half.push_back(
          mean_of({values[i], i + 1 < values.size() ? values[i + 1] : kNone}));
    }
    values = std::move(half);
  }
  rows_ = (rows_ + 1) / 2;
}

std::vector<std::string> NumberTable::names() const {
  std::vector<std::string> names;
  names.reserve(columns_.size());
  for (const auto& [name, _] : columns_) {
    names.push_back(name);
  }
  return names;
}

std::vector<double> NumberTable::column(std::string_view name) const {
  const auto found = std::ranges::find(
      columns_,
      name,
      &std::pair<std::string, std::vector<double>>::first);
  return found == columns_.end() ? std::vector<double>() : found->second;
}

bool NumberTable::has(std::string_view name) const {
  return std::ranges::any_of(column(name), [](double value) {
    return std::isfinite(value);
  });
}

void RunHistory::add(std::string_view line) {
  const auto json = nlohmann::ordered_json::parse(
      line,
      /*cb=*/nullptr,
      /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return;
  }
  NumberTable::Row row;
  for (const auto& [name, value] : json.items()) {
    if (const auto number = number_of(value)) {
      row.emplace_back(name, *number);
    }
  }
  const auto event = json.find("event");
  if (event != json.end() && *event == "epoch") {
    epochs_.add(row);
    const auto by = json.find("best_by");
    if (by != json.end() && by->is_string()) {
      best_by_ = by->get<std::string>();
    }
  } else if (event != json.end() && *event == "step") {
    add_step(row);
  }
}

void RunHistory::add_all(std::string_view text) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n')) {
    add(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

void RunHistory::add_step(const NumberTable::Row& row) {
  pending_.add(row);
  if (pending_.rows() < stride_) {
    return;
  }
  NumberTable::Row means;
  for (const std::string& name : pending_.names()) {
    means.emplace_back(name, mean_of(pending_.column(name)));
  }
  pending_ = {};
  steps_.add(means);
  if (steps_.rows() == kMostSteps) {
    steps_.halve();
    stride_ *= 2;
  }
}

} // namespace lockstep::report
