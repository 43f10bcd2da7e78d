// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/state_reader.h"

#include <cmath>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::internal {

void mismatch(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "optim.load",
       .message = std::move(message),
       .hint = std::move(hint)});
}

StateReader::StateReader(const ckpt::Value& state, std::string_view what)
    : state_(state), what_(what) {
  if (state.as_dict() == nullptr) {
    mismatch(format("{}: expected a dict, got '{}'", what_, state.type_name()));
  }
}

void StateReader::refuse(
    std::string_view key,
    std::string_view want,
    const ckpt::Value& got) const {
  mismatch(format(
      "'{}' of {}: expected {}, got '{}'",
      key,
      what_,
      want,
      got.type_name()));
}

bool StateReader::has(std::string_view key) const {
  return state_.find(key) != nullptr;
}

const ckpt::Value& StateReader::at(std::string_view key) const {
  const ckpt::Value* value = state_.find(key);
  if (value == nullptr) {
    mismatch(format("{} has no '{}'", what_, key));
  }
  return *value;
}

const ckpt::Dict& StateReader::dict(std::string_view key) const {
  const ckpt::Value& value = at(key);
  if (value.as_dict() == nullptr) {
    refuse(key, "a dict", value);
  }
  return *value.as_dict();
}

double StateReader::number(std::string_view key) const {
  const ckpt::Value& value = at(key);
  const std::optional<double> number = number_in(value);
  if (!number) {
    refuse(key, "a number", value);
  }
  return *number;
}

std::int64_t StateReader::integer(std::string_view key) const {
  const ckpt::Value& value = at(key);
  if (value.as_int() != nullptr) {
    return *value.as_int();
  }
  // Scripts divide: `T_max=total / 2` is a float.
  constexpr double kExact = 9007199254740992.0;
  const double number = number_in(value).value_or(0.5);
  if (!(std::abs(number) < kExact && std::trunc(number) == number)) {
    refuse(key, "an integer", value);
  }
  return static_cast<std::int64_t>(number);
}

bool StateReader::flag(std::string_view key) const {
  const ckpt::Value& value = at(key);
  if (value.as_bool() == nullptr) {
    refuse(key, "True or False", value);
  }
  return *value.as_bool();
}

std::string StateReader::text(std::string_view key) const {
  const ckpt::Value& value = at(key);
  if (value.as_string() == nullptr) {
    refuse(key, "a text", value);
  }
  return *value.as_string();
}

const std::vector<ckpt::Value>& StateReader::items(std::string_view key) const {
  const ckpt::Value& value = at(key);
  if (value.as_list() != nullptr) {
    return value.as_list()->items;
  }
  if (value.as_tuple() == nullptr) {
    refuse(key, "a list", value);
  }
  return value.as_tuple()->items;
}

std::vector<double> StateReader::numbers(std::string_view key) const {
  std::vector<double> result;
  for (const ckpt::Value& item : items(key)) {
    const std::optional<double> number = number_in(item);
    if (!number) {
      refuse(key, "numbers", item);
    }
    result.push_back(*number);
  }
  return result;
}

std::vector<double> StateReader::per_group(
    std::string_view key,
    std::size_t num_groups) const {
  std::vector<double> result = numbers(key);
  if (result.size() != num_groups) {
    mismatch(format(
        "'{}' of {}: expected {} values, one per parameter group, got {}",
        key,
        what_,
        num_groups,
        result.size()));
  }
  return result;
}

} // namespace lockstep::internal
