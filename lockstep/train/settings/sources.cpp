// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {
void SettingSources::set(const Flag& flag, std::string place) {
  places_[flag.name] = std::move(place);
}

std::string SettingSources::of(const Flag& flag, std::string_view otherwise)
    const {
  const auto found = places_.find(flag.name);
  return found == places_.end() ? std::string(otherwise) : found->second;
}

std::string environment_name(const Flag& flag) {
  std::string name = "LOCKSTEP_" + flag.key();
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  return name;
}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets variables by now
    const char* const value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

void apply_environment(
    TrainConfig& config,
    SettingSources& sources,
    const Environment& environment) {
  for (const Flag& flag : flag_table()) {
    const std::string name = environment_name(flag);
    const auto value = environment(name);
    if (!value || value->empty()) {
      continue;
    }
    try {
      set_flag(config, flag, *value);
    } catch (const Exception& exception) {
      Error error = exception.error();
      error.path = "environment variable " + name;
      raise(std::move(error));
    }
    sources.set(flag, name);
  }
}

std::string settings_table(
    const TrainConfig& config,
    const SettingSources& sources) {
  constexpr int kNameWidth = 22;
  constexpr int kValueWidth = 22;
  std::string text;
  for (const Flag& flag : flag_table()) {
    const std::string value = get_flag(config, flag);
    text += format(
        "  {}{}  {}\n",
        padded("--" + std::string(flag.name), kNameWidth),
        padded(value.empty() ? "-" : escape(value), kValueWidth),
        sources.of(flag, "default"));
  }
  return text;
}

} // namespace lockstep::train
