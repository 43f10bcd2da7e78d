// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/json_scanner.h"

#include <algorithm>
#include <array>
#include <list>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/core/seen_keys.h"

namespace lockstep::ckpt {
namespace {

constexpr std::array<std::string_view, 3> kPythonNumbers{
    "Infinity",
    "-Infinity",
    "NaN"};

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Stands for itself in a string.
bool is_plain(char c) {
  return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
}

bool is_high_surrogate(std::uint32_t unit) {
  return unit >= 0xD800 && unit <= 0xDBFF;
}

bool is_low_surrogate(std::uint32_t unit) {
  return unit >= 0xDC00 && unit <= 0xDFFF;
}

// What a backslash and this letter stand for; 0 for none.
char simple_escape(char letter) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const std::size_t at = kLetters.find(letter);
  return at == std::string_view::npos ? '\0' : kMeanings[at];
}

} // namespace

Status JsonScanner::members(const MemberVisitor& visit, Repeats repeats) {
  LOCKSTEP_TRY(expect('{'));
  if (accept('}')) {
    return {};
  }
  SeenKeys seen;
  std::list<std::string> made; // keys with escapes
  std::string unescaped;
  do {
    const std::uint64_t at = offset();
    LOCKSTEP_ASSIGN(std::string_view key, text(unescaped));
    if (!unescaped.empty()) {
      key = made.emplace_back(std::move(unescaped));
      unescaped.clear();
    }
    if (repeats == Repeats::kRefused && !seen.insert(key)) {
      Error twice = error("");
      twice.message = format("key `{}` appears twice", escape(key));
      twice.detail = std::string(options_.duplicate_detail);
      twice.offset = at;
      return twice;
    }
    LOCKSTEP_TRY(expect(':'));
    key_offset_ = at;
    LOCKSTEP_TRY(visit(key));
  } while (accept(','));
  return expect('}');
}

Status JsonScanner::fields(std::initializer_list<Field> fields) {
  return members([&](std::string_view key) {
    const auto* field = std::ranges::find(fields, key, &Field::name);
    return field == fields.end() || starts_with('n') ? skip_value()
                                                     : field->read();
  });
}

Status JsonScanner::elements(const std::function<Status()>& visit) {
  LOCKSTEP_TRY(expect('['));
  if (accept(']')) {
    return {};
  }
  do {
    LOCKSTEP_TRY(visit());
  } while (accept(','));
  return expect(']');
}

Result<std::string> JsonScanner::string() {
  std::string made;
  LOCKSTEP_ASSIGN(const std::string_view whole, text(made));
  return made.empty() ? std::string(whole) : std::move(made);
}

Result<std::string_view> JsonScanner::text(std::string& made) {
  if (peek() != '"') {
    return error("expected a string");
  }
  const std::size_t begin = ++at_;
  skip_plain();
  if (at_ == text_.size() || text_[at_] != '"') {
    made = text_.substr(begin, at_ - begin);
    LOCKSTEP_TRY(unescape(made));
    return std::string_view(made);
  }
  ++at_;
  return text_.substr(begin, at_ - 1 - begin);
}

// The rest of a string, from its first byte that does not stand for itself.
Status JsonScanner::unescape(std::string& out) {
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] != '\\') {
      return error_at(at_, "control character in a string");
    }
    LOCKSTEP_TRY(escape_sequence(out));
    const std::size_t begin = at_;
    skip_plain();
    out.append(text_, begin, at_ - begin);
  }
  if (at_ == text_.size()) {
    return error_at(at_, "unterminated string");
  }
  ++at_;
  return {};
}

void JsonScanner::skip_plain() {
  while (at_ < text_.size() && is_plain(text_[at_])) {
    ++at_;
  }
}

Result<std::uint64_t> JsonScanner::unsigned_integer() {
  const char first = peek();
  const std::size_t begin = at_;
  if (!is_digit(first)) {
    return error("expected an unsigned integer");
  }
  std::uint64_t value = 0;
  while (at_ < text_.size() && is_digit(text_[at_])) {
    const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      return error_at(begin, "an integer does not fit in 64 bits");
    }
    ++at_;
  }
  const char next = at_ < text_.size() ? text_[at_] : '\0';
  if (next == '.' || next == 'e' || next == 'E') {
    return error_at(begin, "expected an unsigned integer, got a float");
  }
  if (first == '0' && at_ - begin > 1) {
    return error_at(begin, "an integer has a leading zero");
  }
  return value;
}

Result<bool> JsonScanner::boolean() {
  const bool value = starts_with('t');
  LOCKSTEP_TRY(skip_word(value ? "true" : "false"));
  return value;
}

Result<std::string_view> JsonScanner::number() {
  skip_space();
  const std::size_t begin = at_;
  LOCKSTEP_TRY(skip_number());
  return text_.substr(begin, at_ - begin);
}

bool JsonScanner::starts_with(char c) {
  return peek() == c;
}

// Iterative: `open` holds the containers around the current place.
Status JsonScanner::skip_value() {
  std::string open;
  do {
    const char c = peek();
    if (c == '{' || c == '[') {
      if (open.size() == kMaxJsonLevels) {
        return error("values are nested too deeply");
      }
      ++at_;
      if (!accept(c == '{' ? '}' : ']')) {
        open.push_back(c);
        LOCKSTEP_TRY(skip_key(open));
        continue;
      }
    } else {
      LOCKSTEP_TRY(skip_scalar());
    }
    while (!open.empty() && !accept(',')) {
      LOCKSTEP_TRY(expect(open.back() == '{' ? '}' : ']'));
      open.pop_back();
    }
    LOCKSTEP_TRY(skip_key(open));
  } while (!open.empty());
  return {};
}

Status JsonScanner::skip_key(const std::string& open) {
  if (open.empty() || open.back() != '{') {
    return {};
  }
  std::string made;
  LOCKSTEP_TRY(text(made));
  return expect(':');
}

Status JsonScanner::end() {
  return peek() == '\0' && at_ == text_.size()
             ? Status()
             : Status(error("unexpected bytes after the value"));
}

std::uint64_t JsonScanner::offset() {
  skip_space();
  return options_.base_offset + at_;
}

Error JsonScanner::error(std::string_view message) {
  skip_space();
  return error_at(at_, message);
}

void JsonScanner::skip_space() {
  while (at_ < text_.size() && is_space(text_[at_])) {
    ++at_;
  }
}

char JsonScanner::peek() {
  skip_space();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonScanner::accept(char c) {
  if (peek() != c || at_ == text_.size()) {
    return false;
  }
  ++at_;
  return true;
}

Status JsonScanner::expect(char c) {
  if (accept(c)) {
    return {};
  }
  const std::string got = at_ < text_.size()
                              ? "'" + escape(text_.substr(at_, 1)) + "'"
                              : std::string("the end");
  return error(format("expected '{}', got {}", std::string(1, c), got));
}

Status JsonScanner::escape_sequence(std::string& out) {
  const std::size_t begin = at_;
  const char letter = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  at_ += 2;
  if (const char meaning = simple_escape(letter)) {
    out.push_back(meaning);
    return {};
  }
  if (letter != 'u') {
    return error_at(begin, "unknown escape sequence");
  }
  LOCKSTEP_ASSIGN(std::uint32_t point, hex4());
  if (is_high_surrogate(point)) {
    if (text_.substr(at_, 2) != "\\u") {
      return error_at(begin, "unpaired surrogate");
    }
    at_ += 2;
    LOCKSTEP_ASSIGN(const std::uint32_t low, hex4());
    if (!is_low_surrogate(low)) {
      return error_at(begin, "unpaired surrogate");
    }
    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
  } else if (is_low_surrogate(point)) {
    return error_at(begin, "unpaired surrogate");
  }
  append_utf8(out, point);
  return {};
}

Result<std::uint32_t> JsonScanner::hex4() {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const std::size_t digit =
        at_ < text_.size() ? kDigits.find(text_[at_]) : std::string_view::npos;
    if (digit == std::string_view::npos) {
      return error_at(at_, "expected four hex digits");
    }
    const std::size_t nibble = digit < 16 ? digit : digit - 6;
    value = value << 4 | static_cast<std::uint32_t>(nibble);
  }
  return value;
}

Status JsonScanner::skip_scalar() {
  switch (peek()) {
    case '"': {
      std::string made;
      LOCKSTEP_TRY(text(made));
      return {};
    }
    case 't':
      return skip_word("true");
    case 'f':
      return skip_word("false");
    case 'n':
      return skip_word("null");
    default:
      return skip_number();
  }
}

Status JsonScanner::skip_word(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) {
    return error("expected a value");
  }
  at_ += word.size();
  return {};
}

Status JsonScanner::skip_number() {
  if (options_.takes_python_numbers) {
    for (const std::string_view word : kPythonNumbers) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return {};
      }
    }
  }
  const std::size_t begin = at_;
  const auto digits = [this] {
    const std::size_t first = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) {
      ++at_;
    }
    return at_ - first;
  };
  const auto next_is = [this](std::string_view set) {
    return at_ < text_.size() && set.find(text_[at_]) != std::string_view::npos;
  };
  at_ += next_is("-") ? 1 : 0;
  const bool leading_zero = next_is("0");
  const std::size_t whole = digits();
  bool good = whole != 0 && !(leading_zero && whole > 1);
  if (good && next_is(".")) {
    ++at_;
    good = digits() != 0;
  }
  if (good && next_is("eE")) {
    ++at_;
    at_ += next_is("+-") ? 1 : 0;
    good = digits() != 0;
  }
  return good ? Status() : Status(error_at(begin, "expected a value"));
}

Error JsonScanner::error_at(std::size_t at, std::string_view message) const {
  return {
      .code = ErrorCode::kCorrupt,
      .op = "ckpt.read",
      .message = format("{}: {}", options_.what, message),
      .offset = options_.base_offset + at,
      .detail = std::string(options_.detail)};
}

} // namespace lockstep::ckpt
