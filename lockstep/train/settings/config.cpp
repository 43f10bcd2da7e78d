// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/settings/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

[[noreturn]] void
bad_value(const Flag& flag, std::string_view expected, std::string_view text) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.flags",
       .message = format(
           "--{}: expected {}, got '{}'",
           flag.name,
           expected,
           escape(text)),
       .detail = "E_FLAG_VALUE"});
}

template <class T>
T number_of(const Flag& flag, std::string_view text) {
  constexpr std::string_view kKind =
      std::integral<T> ? "a whole number" : "a number";
  const auto number = parse_number<T>(text);
  if (!number) {
    bad_value(flag, kKind, text);
  }
  if constexpr (std::floating_point<T>) {
    if (!std::isfinite(*number)) {
      bad_value(flag, kKind, text);
    }
  }
  if (static_cast<double>(*number) < flag.minimum) {
    bad_value(flag, format("{} >= {}", kKind, flag.minimum), text);
  }
  if (static_cast<double>(*number) > flag.maximum) {
    bad_value(flag, format("{} <= {}", kKind, flag.maximum), text);
  }
  return *number;
}

void parse(const Flag& flag, std::string_view text, std::string& out) {
  const auto words = split(flag.choices, '|');
  const bool is_own = flag.may_be_own && text.starts_with(kOwnPrefix);
  if (!flag.choices.empty() && !is_own &&
      std::ranges::find(words, text) == words.end()) {
    bad_value(flag, join(words, ", "), text);
  }
  out = text;
}

void parse(const Flag& flag, std::string_view text, std::int64_t& out) {
  out = number_of<std::int64_t>(flag, text);
}

void parse(const Flag& flag, std::string_view text, double& out) {
  out = number_of<double>(flag, text);
}

void parse(const Flag& flag, std::string_view text, bool& out) {
  if (text != "true" && text != "false" && text != "1" && text != "0") {
    bad_value(flag, "true or false", text);
  }
  out = text == "true" || text == "1";
}

void parse(
    const Flag& flag,
    std::string_view text,
    std::vector<std::int64_t>& out) {
  out.clear();
  if (text.empty()) {
    return;
  }
  for (const std::string& part : split(text, ',')) {
    out.push_back(number_of<std::int64_t>(flag, part));
  }
}

std::string print(const std::string& value) {
  return value;
}
std::string print(std::int64_t value) {
  return std::to_string(value);
}
std::string print(double value) {
  return shortest(value);
}
std::string print(bool value) {
  return value ? "true" : "false";
}
std::string print(const std::vector<std::int64_t>& values) {
  std::vector<std::string> parts;
  parts.reserve(values.size());
  for (const std::int64_t value : values) {
    parts.push_back(std::to_string(value));
  }
  return join(parts, ",");
}

/// "--batch_size" -> "--batch-size".
std::string with_hyphens(std::string_view spelling) {
  std::string text(spelling);
  std::ranges::replace(text, '_', '-');
  return text;
}

bool has_spelling(const Flag& flag, std::string_view spelling) {
  const auto aliases = split(flag.aliases, ',');
  return (spelling.starts_with("--") && spelling.substr(2) == flag.name) ||
         std::ranges::find(aliases, spelling) != aliases.end();
}

} // namespace

std::string Flag::key() const {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

std::string_view group_title(FlagGroup group) {
  constexpr std::array<std::string_view, 12> kTitles{
      "Data",
      "Images",
      "Model",
      "Devices",
      "Kernels and precision",
      "Task",
      "Optimization",
      "Each step",
      "Parts of the model",
      "Learning rate over time",
      "Run",
      "Output"};
  return kTitles.at(static_cast<std::size_t>(group));
}

const Flag* find_flag(std::string_view spelling) {
  if (!spelling.starts_with('-')) {
    return nullptr;
  }
  const std::string wanted = with_hyphens(spelling);
  const auto match = [&](const Flag& flag) {
    return has_spelling(flag, wanted);
  };
  const auto found = std::ranges::find_if(flag_table(), match);
  return found == flag_table().end() ? nullptr : &*found;
}

const Flag* find_key(std::string_view key) {
  const auto found = std::ranges::find(flag_table(), key, &Flag::key);
  return found == flag_table().end() ? nullptr : &*found;
}

std::vector<std::string> flag_spellings() {
  std::vector<std::string> spellings;
  for (const Flag& flag : flag_table()) {
    spellings.push_back("--" + std::string(flag.name));
    for (const std::string& alias : split(flag.aliases, ',')) {
      if (alias.starts_with("--")) {
        spellings.push_back(alias);
      }
    }
  }
  return spellings;
}

void set_flag(TrainConfig& config, const Flag& flag, std::string_view text) {
  std::visit(
      [&](auto member) { parse(flag, text, config.*member); },
      flag.member);
}

TrainConfig checked_flags(TrainConfig config) {
  for (const Flag& flag : flag_table()) {
    set_flag(config, flag, get_flag(config, flag));
  }
  return config;
}

std::string get_flag(const TrainConfig& config, const Flag& flag) {
  return std::visit(
      [&](auto member) { return print(config.*member); },
      flag.member);
}

} // namespace lockstep::train
