// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/json.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

struct ShortEscape {
  char character = 0;
  std::string_view text = {};
};

constexpr std::array kShortEscapes{
    ShortEscape{'"', "\\\""},
    ShortEscape{'\\', "\\\\"},
    ShortEscape{'\b', "\\b"},
    ShortEscape{'\f', "\\f"},
    ShortEscape{'\n', "\\n"},
    ShortEscape{'\r', "\\r"},
    ShortEscape{'\t', "\\t"},
};

std::string quote_ascii(char character) {
  const auto* const found =
      std::ranges::find(kShortEscapes, character, &ShortEscape::character);
  if (found != kShortEscapes.end()) {
    return std::string(found->text);
  }
  const auto code = static_cast<unsigned char>(character);
  return code < 0x20 || code == 0x7F ? format("\\u{:04x}", code)
                                     : std::string(1, character);
}

// JSON has no NaN and no infinities; readers get them as strings.
template <class T>
std::string number_text(T value) {
  const std::string text = shortest(value);
  return std::isfinite(value) ? text : '"' + text + '"';
}

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
// clang 16 does not deduce the arguments of an aggregate by itself.
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

void new_line(std::string& out, int indent, int level) {
  if (indent > 0) {
    out += '\n';
    out.append(
        static_cast<std::size_t>(indent) * static_cast<std::size_t>(level),
        ' ');
  }
}

} // namespace

std::string json_quote(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 1) {
      quoted += quote_ascii(text[0]);
    } else if (length == 0) {
      quoted += "\\ufffd";
    } else {
      quoted += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return quoted + '"';
}

Json Json::object() {
  Json json;
  json.value_ = Object();
  return json;
}

Json Json::array() {
  Json json;
  json.value_ = Array();
  return json;
}

Json& Json::set(std::string_view key, Json value) {
  if (std::holds_alternative<std::nullptr_t>(value_)) {
    value_ = Object();
  }
  auto* const members = std::get_if<Object>(&value_);
  LOCKSTEP_CHECK(members != nullptr);
  members->emplace_back(key, std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  if (std::holds_alternative<std::nullptr_t>(value_)) {
    value_ = Array();
  }
  auto* const elements = std::get_if<Array>(&value_);
  LOCKSTEP_CHECK(elements != nullptr);
  elements->push_back(std::move(value));
  return *this;
}

std::string Json::dump(int indent) const {
  std::string out;
  write(out, indent, 0);
  return out;
}

void Json::write(std::string& out, int indent, int level) const {
  std::visit(
      Overloaded{
          [&](std::nullptr_t) { out += "null"; },
          [&](bool value) { out += value ? "true" : "false"; },
          [&](float value) { out += number_text(value); },
          [&](double value) { out += number_text(value); },
          [&](std::int64_t value) { out += std::to_string(value); },
          [&](std::uint64_t value) { out += std::to_string(value); },
          [&](const std::string& value) { out += json_quote(value); },
          [&](const auto& /*container*/) {
            write_children(out, indent, level);
          }},
      value_);
}

void Json::write_children(std::string& out, int indent, int level) const {
  const auto separate = [&](bool first) {
    out += first ? "" : ",";
    new_line(out, indent, level + 1);
  };
  bool first = true;
  if (const auto* const elements = std::get_if<Array>(&value_)) {
    out += '[';
    for (const Json& element : *elements) {
      separate(std::exchange(first, false));
      element.write(out, indent, level + 1);
    }
  } else {
    out += '{';
    for (const auto& [key, member] : std::get<Object>(value_)) {
      separate(std::exchange(first, false));
      out += json_quote(key) + (indent > 0 ? ": " : ":");
      member.write(out, indent, level + 1);
    }
  }
  if (!first) {
    new_line(out, indent, level);
  }
  out += std::holds_alternative<Array>(value_) ? ']' : '}';
}

} // namespace lockstep
