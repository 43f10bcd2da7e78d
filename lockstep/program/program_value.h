// SPDX-License-Identifier: BSD-3-Clause
//
// What a net from Python takes and gives: tensors, numbers, texts, None, and
// tuples, lists and dicts of these.
//   ProgramValue result = net->forward(ProgramArguments{.args = {x, mask}});
//   at::Tensor logits = result["logits"].tensor();
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "lockstep/tensor/structure.h"

namespace lockstep {

/// One value. Copies are of their own, but for the memory of tensors.
class ProgramValue {
 public:
  /// None.
  ProgramValue() = default;
  // Implicit on purpose: values convert where forward is called.
  // NOLINTBEGIN(google-explicit-constructor)
  ProgramValue(at::Tensor tensor) : value_(std::move(tensor)) {}
  ProgramValue(std::same_as<bool> auto value) : value_(value) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  ProgramValue(T value) : value_(static_cast<std::int64_t>(value)) {}
  ProgramValue(std::floating_point auto value)
      : value_(static_cast<double>(value)) {}
  ProgramValue(std::string text) : value_(std::move(text)) {}
  ProgramValue(const char* text) : value_(std::string(text)) {}
  // NOLINTEND(google-explicit-constructor)

  using Item = std::pair<std::string, ProgramValue>;
  static ProgramValue tuple(std::vector<ProgramValue> items);
  static ProgramValue list(std::vector<ProgramValue> items);
  static ProgramValue dict(std::vector<Item> items);

  [[nodiscard]] bool is_none() const noexcept;
  [[nodiscard]] bool is_tensor() const noexcept;
  /// Errors of these: throw kMismatch (E_PROGRAM_VALUE) for another kind.
  [[nodiscard]] const at::Tensor& tensor() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] const std::string& text() const;
  /// The value of a dict's key. Errors: also kNotFound, with the keys.
  [[nodiscard]] const ProgramValue& operator[](std::string_view key) const;
  /// An item of a tuple, a list or a dict. Errors: also kNotFound.
  [[nodiscard]] const ProgramValue& operator[](std::size_t index) const;

  /// Items of a tuple, a list or a dict; none of any other value.
  [[nodiscard]] std::span<const ProgramValue> items() const noexcept;
  /// Keys of a dict, in the order of its items.
  [[nodiscard]] std::span<const std::string> keys() const noexcept;
  /// "builtins.tuple", "builtins.list", "builtins.dict"; empty for what holds
  /// no items.
  [[nodiscard]] std::string_view container() const noexcept;
  /// As LibTorch's own value. Errors: throws kMismatch for what holds items.
  [[nodiscard]] c10::IValue ivalue() const;
  /// "{'out': tensor, 'more': (tensor, 5)}"
  [[nodiscard]] std::string describe() const;

  /// Calls `f(tensor)` for each tensor, in order.
  template <class F>
  void visit(const F& f) {
    if (auto* tensor = std::get_if<at::Tensor>(&value_)) {
      f(*tensor);
    } else if (auto* held = std::get_if<Container>(&value_)) {
      for (ProgramValue& item : held->items) {
        item.visit(f);
      }
    }
  }
  template <class F>
  void visit(const F& f) const {
    if (const auto* tensor = std::get_if<at::Tensor>(&value_)) {
      f(*tensor);
    }
    for (const ProgramValue& item : items()) {
      item.visit(f);
    }
  }

 private:
  struct Container {
    std::string_view type = {};
    std::vector<std::string> keys = {};
    std::vector<ProgramValue> items = {};
  };
  static ProgramValue container_of(Container container);
  template <class T>
  const T& get(std::string_view wanted) const;

  std::variant<
      std::monostate,
      at::Tensor,
      bool,
      std::int64_t,
      double,
      std::string,
      Container>
      value_ = {};
};

/// How a program's forward is called, as in Python.
struct ProgramArguments {
  std::vector<ProgramValue> args = {};
  std::vector<ProgramValue::Item> kwargs = {};
};

template <>
struct Structure<ProgramValue> {
  static constexpr bool kHasTensors = true;
  static constexpr bool kIsJoinable = true;
  template <class V, class F>
  static void visit(V& value, const F& f) {
    value.visit(f);
  }
  static std::string describe(const ProgramValue& value) {
    return value.describe();
  }
};

template <>
struct Structure<ProgramArguments>
    : Fields<&ProgramArguments::args, &ProgramArguments::kwargs> {};

} // namespace lockstep
