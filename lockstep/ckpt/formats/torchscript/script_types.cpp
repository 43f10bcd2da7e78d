// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/script_types.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/ckpt/core/tensor_layout.h"

namespace lockstep::ckpt::internal {
namespace {

// Words of Python, which cannot stand before a colon.
constexpr std::array<std::string_view, 38> kKeywords{
    "False",  "None",   "True",    "and",      "as",     "assert", "async",
    "await",  "break",  "class",   "continue", "def",    "del",    "elif",
    "else",   "except", "finally", "for",      "from",   "global", "if",
    "import", "in",     "inf",     "is",       "lambda", "nan",    "nonlocal",
    "not",    "or",     "pass",    "print",    "raise",  "return", "try",
    "while",  "with",   "yield"};

bool is_tensor(const Value& value) {
  if (value.as_tensor() != nullptr) {
    return true;
  }
  const auto layout = layout_tensor(value);
  return layout && layout->layout.starts_with("sparse_");
}

// Types without parts.
std::optional<std::string> scalar_type(const Value& value) {
  if (is_tensor(value)) {
    return "Tensor";
  }
  if (value.as_bool() != nullptr) {
    return "bool";
  }
  if (value.as_int() != nullptr) {
    return "int";
  }
  if (value.type() == Value::Type::kFloat) {
    return "float";
  }
  if (value.as_complex() != nullptr) {
    return "complex";
  }
  if (value.as_string() != nullptr) {
    return "str";
  }
  if (value.is_none()) {
    return "NoneType";
  }
  if (value.as_device() != nullptr) {
    return "Device";
  }
  return std::nullopt;
}

std::optional<std::string> list_type(const List& list) {
  std::optional<std::string> type;
  for (const Value& item : list.items) {
    const auto own = scalar_type(item);
    if (!own || *own == "NoneType" || *own == "Device" ||
        (type && *type != *own)) {
      return std::nullopt;
    }
    type = own;
  }
  return type ? std::optional<std::string>("List[" + *type + "]")
              : std::nullopt;
}

std::optional<std::string> tuple_type(const Tuple& tuple) {
  std::string text;
  for (const Value& item : tuple.items) {
    const auto own = scalar_type(item);
    if (!own || *own == "Tensor") {
      return std::nullopt;
    }
    text += (text.empty() ? "" : ", ") + *own;
  }
  return text.empty() ? std::nullopt
                      : std::optional<std::string>("Tuple[" + text + "]");
}

} // namespace

std::optional<std::string> script_type(const Value& value) {
  if (const List* list = value.as_list()) {
    return list_type(*list);
  }
  if (const Tuple* tuple = value.as_tuple()) {
    return tuple_type(*tuple);
  }
  if (value.as_size() != nullptr) {
    return "List[int]";
  }
  return scalar_type(value);
}

bool is_script_identifier(std::string_view name) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c >= '0' && c <= '9');
  };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::ranges::all_of(name, is_word) &&
         std::ranges::find(kKeywords, name) == kKeywords.end();
}

bool can_be_attribute(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\'' && c != '\\';
  });
}

} // namespace lockstep::ckpt::internal
