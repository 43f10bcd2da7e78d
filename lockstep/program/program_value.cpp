// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <ATen/ops/scalar_tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/program/program.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

constexpr std::string_view kTuple = "builtins.tuple";
constexpr std::string_view kList = "builtins.list";
constexpr std::string_view kDict = "builtins.dict";

[[noreturn]] void
raise_value(ErrorCode code, std::string message, std::string hint = {}) {
  raise(
      {.code = code,
       .op = "program.value",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_PROGRAM_VALUE"});
}

} // namespace

ProgramValue ProgramValue::container_of(Container container) {
  ProgramValue value;
  value.value_ = std::move(container);
  return value;
}

void ProgramValue::raise_too_large(std::uint64_t number) {
  raise_value(
      ErrorCode::kInvalidArgument,
      format(
          "whole numbers of a program are int64, up to {}; got {}",
          std::numeric_limits<std::int64_t>::max(),
          number));
}

ProgramValue ProgramValue::tuple(std::vector<ProgramValue> items) {
  return container_of({.type = kTuple, .items = std::move(items)});
}

ProgramValue ProgramValue::list(std::vector<ProgramValue> items) {
  return container_of({.type = kList, .items = std::move(items)});
}

ProgramValue ProgramValue::dict(std::vector<Item> items) {
  Container dict{.type = kDict};
  for (auto& [key, value] : items) {
    dict.keys.push_back(std::move(key));
    dict.items.push_back(std::move(value));
  }
  return container_of(std::move(dict));
}

bool ProgramValue::is_none() const noexcept {
  return value_.index() == 0;
}

bool ProgramValue::is_tensor() const noexcept {
  return std::holds_alternative<at::Tensor>(value_);
}

bool ProgramValue::is_number() const noexcept {
  return std::holds_alternative<bool>(value_) ||
         std::holds_alternative<std::int64_t>(value_) ||
         std::holds_alternative<double>(value_);
}

template <class T>
const T& ProgramValue::get(std::string_view wanted) const {
  const T* held = std::get_if<T>(&value_);
  if (held == nullptr) {
    raise_value(
        ErrorCode::kMismatch,
        format("expected {}, got {}", wanted, describe()));
  }
  return *held;
}

const at::Tensor& ProgramValue::tensor() const& {
  return get<at::Tensor>("a tensor");
}

at::Tensor ProgramValue::tensor() && {
  return get<at::Tensor>("a tensor");
}

std::int64_t ProgramValue::integer() const {
  const bool* flag = std::get_if<bool>(&value_);
  return flag != nullptr ? (*flag ? 1 : 0)
                         : get<std::int64_t>("a whole number");
}

double ProgramValue::number() const {
  const double* held = std::get_if<double>(&value_);
  return held != nullptr ? *held : static_cast<double>(integer());
}

const std::string& ProgramValue::text() const& {
  return get<std::string>("a text");
}

std::string ProgramValue::text() && {
  return get<std::string>("a text");
}

const ProgramValue& ProgramValue::operator[](std::string_view key) const& {
  const auto& dict = get<Container>("a dict");
  if (dict.type != kDict) {
    raise_value(
        ErrorCode::kMismatch,
        format("expected a dict, got {}", describe()),
        "index it by position: result[0]");
  }
  const auto found = std::ranges::find(dict.keys, key);
  if (found == dict.keys.end()) {
    raise_value(
        ErrorCode::kNotFound,
        format("there is no '{}'", escape(key)),
        "keys: " + join(dict.keys, ", "));
  }
  return dict.items.at(static_cast<std::size_t>(found - dict.keys.begin()));
}

const ProgramValue& ProgramValue::operator[](std::size_t index) const& {
  const auto& held = get<Container>("a tuple, a list or a dict");
  if (index >= held.items.size()) {
    raise_value(
        ErrorCode::kNotFound,
        format("there is no item {} in {}", index, describe()));
  }
  return held.items[index];
}

ProgramValue ProgramValue::operator[](std::string_view key) && {
  return std::as_const(*this)[key];
}

ProgramValue ProgramValue::operator[](std::size_t index) && {
  return std::as_const(*this)[index];
}

std::span<const ProgramValue> ProgramValue::items() const& noexcept {
  const auto* held = std::get_if<Container>(&value_);
  return held == nullptr ? std::span<const ProgramValue>() : held->items;
}

std::span<const std::string> ProgramValue::keys() const& noexcept {
  const auto* held = std::get_if<Container>(&value_);
  return held == nullptr ? std::span<const std::string>() : held->keys;
}

std::vector<ProgramValue> ProgramValue::items() && {
  auto* held = std::get_if<Container>(&value_);
  return held == nullptr ? std::vector<ProgramValue>() : std::move(held->items);
}

std::vector<std::string> ProgramValue::keys() && {
  auto* held = std::get_if<Container>(&value_);
  return held == nullptr ? std::vector<std::string>() : std::move(held->keys);
}

std::string_view ProgramValue::container() const noexcept {
  const auto* held = std::get_if<Container>(&value_);
  return held == nullptr ? std::string_view() : held->type;
}

c10::IValue ProgramValue::ivalue() const {
  return std::visit(
      [this](const auto& held) -> c10::IValue {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::monostate>) {
          return {};
        } else if constexpr (std::is_same_v<Held, Container>) {
          raise_value(
              ErrorCode::kMismatch,
              format("expected one value, got {}", describe()));
        } else {
          return held;
        }
      },
      value_);
}

ProgramValue ProgramValue::with_tensors() const {
  if (is_number()) {
    const c10::Scalar number = ivalue().toScalar();
    return at::scalar_tensor(number, at::TensorOptions(number.type()));
  }
  ProgramValue copy = *this;
  if (auto* held = std::get_if<Container>(&copy.value_)) {
    for (ProgramValue& item : held->items) {
      item = item.with_tensors();
    }
  }
  return copy;
}

std::string ProgramValue::describe() const {
  struct Words {
    std::string operator()(std::monostate /*none*/) const {
      return "None";
    }
    std::string operator()(const at::Tensor& tensor) const {
      return tensor.defined() ? "tensor" : "an undefined tensor";
    }
    std::string operator()(bool value) const {
      return value ? "True" : "False";
    }
    std::string operator()(std::int64_t value) const {
      return std::to_string(value);
    }
    std::string operator()(double value) const {
      return format("{}", value);
    }
    std::string operator()(const std::string& text) const {
      return python_repr(text);
    }
    std::string operator()(const Container& held) const {
      std::vector<std::string> parts;
      for (std::size_t i = 0; i < held.items.size(); ++i) {
        const std::string text = held.items[i].describe();
        parts.push_back(
            held.keys.empty() ? text : python_repr(held.keys[i]) + ": " + text);
      }
      const std::string inside = join(parts, ", ");
      return held.type == kDict   ? "{" + inside + "}"
             : held.type == kList ? "[" + inside + "]"
                                  : "(" + inside + ")";
    }
  };
  return std::visit(Words(), value_);
}

} // namespace lockstep
