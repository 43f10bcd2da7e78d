// SPDX-License-Identifier: BSD-3-Clause
//
// Writes JSON. Keys keep their order, NaN and infinities become strings, and
// text that is not UTF-8 cannot break the output. Reading is not done here.
//   Json result = Json::object();
//   result.set("bytes", 5).set("loss", 0.1F);
//   result.dump()   // {"bytes":5,"loss":0.1}
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep {

/// A JSON value, built from the outside in or the inside out.
class Json {
 public:
  /// null
  Json() = default;
  // Implicit on purpose: values convert where `set` and `push` are called.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Json(bool value) : value_(value) {}
  template <std::signed_integral T>
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Json(T value) : value_(static_cast<std::int64_t>(value)) {}
  template <std::unsigned_integral T>
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Json(T value) : value_(static_cast<std::uint64_t>(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Json(float value) : value_(value) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Json(double value) : value_(value) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Json(std::string_view value) : value_(std::string(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Json(const std::string& value) : value_(value) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  Json(const char* value) : value_(std::string(value)) {}

  /// {}
  static Json object();
  /// []
  static Json array();
  /// ["a", "b"]: the elements, or what `make` makes of each.
  template <std::ranges::input_range Elements, class Make = std::identity>
  static Json array(const Elements& elements, const Make& make = {}) {
    Json json = array();
    for (const auto& element : elements) {
      json.push(std::invoke(make, element));
    }
    return json;
  }

  /// Adds a member; a null value turns into an object first. The key must be
  /// new. Errors: throws kInternal on another kind of value.
  Json& set(std::string_view key, Json value);
  /// Adds an element; a null value turns into an array first.
  /// Errors: as `set`.
  Json& push(Json value);

  /// As text: on one line, or with `indent` spaces per level.
  [[nodiscard]] std::string dump(int indent = 0) const;

 private:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  void write(std::string& out, int indent, int level) const;
  void write_children(std::string& out, int indent, int level) const;

  std::variant<
      std::nullptr_t,
      bool,
      std::int64_t,
      std::uint64_t,
      float,
      double,
      std::string,
      Array,
      Object>
      value_ = nullptr;
};

/// `text` in quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

} // namespace lockstep
#pragma GCC visibility pop
