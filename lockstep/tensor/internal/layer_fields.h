// SPDX-License-Identifier: BSD-3-Clause
//
// The pieces that the options of a layer are printed from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <torch/enum.h>
#include <torch/expanding_array.h>
#include <torch/nn/module.h>

#include "lockstep/base/strings.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::layer_fields {

inline std::string text_of(bool value) {
  return value ? "True" : "False";
}
inline std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
inline std::string text_of(double value) {
  return shortest(value);
}
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : "None";
}

template <std::size_t D>
std::string tuple(const torch::ExpandingArray<D>& sizes) {
  return tuple_text(c10::IntArrayRef(*sizes));
}

template <std::size_t D>
bool all_are(const torch::ExpandingArray<D>& sizes, std::int64_t value) {
  return std::ranges::all_of(*sizes, [&](auto size) { return size == value; });
}

// "2" for equal sizes, else "(2, 1)".
template <std::size_t D>
std::string size_or_tuple(const torch::ExpandingArray<D>& sizes) {
  const std::int64_t first = (*sizes)[0];
  return all_are(sizes, first) ? text_of(first) : tuple(sizes);
}

// As above, for options that are vectors.
template <class T>
std::string equal_or_tuple(const std::vector<T>& values) {
  std::string text;
  bool equal = true;
  for (const T& value : values) {
    equal = equal && value == values.front();
    text += (text.empty() ? "" : ", ") + text_of(value);
  }
  return equal && !values.empty() ? text_of(values.front()) : "(" + text + ")";
}

template <class T>
std::string field(const char* name, const T& value) {
  return std::string(name) + "=" + text_of(value);
}

// "torch::kReflect" -> "reflect".
template <class Enum>
std::string enum_text(const Enum& value) {
  std::string name = torch::enumtype::get_enum_name(value);
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  name = name.substr(name.find_last_of(':') + 1);
  return name.starts_with('k') ? name.substr(1) : name;
}

// ", groups=2" unless the value is what Python leaves out.
template <class T>
std::string unless(const char* name, const T& value, const T& left_out) {
  return value == left_out ? "" : ", " + field(name, value);
}

// Prints the options of one class of layers; nothing for others.
using Printer = std::optional<std::string> (*)(const torch::nn::Module&);

template <class Layer, std::string (*Text)(const Layer&)>
std::optional<std::string> try_layer(const torch::nn::Module& module) {
  const auto* layer = dynamic_cast<const Layer*>(&module);
  return layer == nullptr ? std::nullopt : std::optional(Text(*layer));
}

// The text of the first printer that knows `module`.
inline std::optional<std::string> first_text(
    std::span<const Printer> printers,
    const torch::nn::Module& module) {
  for (const Printer printer : printers) {
    if (auto text = printer(module)) {
      return text;
    }
  }
  return std::nullopt;
}

} // namespace lockstep::layer_fields
