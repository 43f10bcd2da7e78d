// SPDX-License-Identifier: BSD-3-Clause
//
// Reads hostile JSON as a stream of expected tokens: nothing is built that the
// caller did not ask for, depth is bounded, every error has its offset, and a
// key that appears twice is an error, unless `Repeats` allows it.
//   JsonScanner json(text, {.detail = "E_INDEX", .what = "the index"});
//   json.members([&](std::string_view key) { return json.skip_value(); });
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::ckpt {

/// How a scanner reports.
struct JsonScannerOptions {
  /// Detail of its errors.
  std::string_view detail = {};
  /// Detail of a key that appears twice.
  std::string_view duplicate_detail = {};
  /// Front of its messages: "invalid JSON in header".
  std::string_view what = "invalid JSON";
  /// Units: bytes in the file before the text.
  std::uint64_t base_offset = 0;
  /// Infinity, -Infinity and NaN are numbers, as Python writes them.
  bool takes_python_numbers = false;
};

/// What becomes of a key that an object has twice.
enum class Repeats {
  kRefused,
  /// The visitor is given each of them.
  kGiven,
};

/// Views `text`, which must be UTF-8. After an error the scanner is of no use.
/// Errors of all: kCorrupt with the offset.
class JsonScanner {
 public:
  JsonScanner(std::string_view text, const JsonScannerOptions& options)
      : text_(text), options_(options) {}

  /// Called before the value of each member; must consume it. `key` is gone
  /// when the object has been read.
  using MemberVisitor = std::function<Status(std::string_view key)>;
  /// Reads an object.
  Status members(
      const MemberVisitor& visit,
      Repeats repeats = Repeats::kRefused);
  /// A member of an object, and what reads its value.
  struct Field {
    std::string_view name = {};
    std::function<Status()> read = {};
  };
  /// Reads an object. Members that no field names are skipped, and so is null.
  Status fields(std::initializer_list<Field> fields);
  /// Reads an array; `visit` must consume one element.
  Status elements(const std::function<Status()>& visit);
  Result<std::string> string();
  /// Digits only: no sign, fraction or exponent.
  Result<std::uint64_t> unsigned_integer();
  Result<bool> boolean();
  /// Any number, as it is written.
  Result<std::string_view> number();
  /// True if the next token starts with `c`: '"' for a string, 'n' for null.
  bool starts_with(char c);
  /// Any value, checked and forgotten.
  Status skip_value();
  /// Nothing but white space may be left.
  Status end();

  /// Units: bytes from the start of the file, of the next token.
  std::uint64_t offset();
  /// Offset of the key that `members` gave last.
  [[nodiscard]] std::uint64_t key_offset() const noexcept {
    return key_offset_;
  }
  /// An error at the next token.
  Error error(std::string_view message);

 private:
  void skip_space();
  // The next character after white space, 0 at the end.
  char peek();
  bool accept(char c);
  Status expect(char c);
  // A string's text: a view of the document, or of `made` if it has escapes.
  Result<std::string_view> text(std::string& made);
  Status unescape(std::string& out);
  void skip_plain();
  Status escape_sequence(std::string& out);
  Result<std::uint32_t> hex4();
  // Inside an object: the key before a value, with its colon.
  Status skip_key(const std::string& open);
  Status skip_scalar();
  Status skip_number();
  Status skip_word(std::string_view word);
  [[nodiscard]] Error error_at(std::size_t at, std::string_view message) const;

  std::string_view text_;
  JsonScannerOptions options_;
  std::size_t at_ = 0;
  std::uint64_t key_offset_ = 0;
};

} // namespace lockstep::ckpt
