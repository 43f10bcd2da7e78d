// SPDX-License-Identifier: BSD-3-Clause
//
// sed's substitution, as far as keys need it.
#include <regex>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit/key_edit.h"

namespace lockstep::ckpt {
namespace {

constexpr std::size_t kMaxKeyBytes = 4096;

Error bad_rule(std::string_view text, std::string_view what) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "ckpt.edit",
      .message = format("'{}' is no rule for renaming: {}", escape(text), what),
      .hint = R"(write it as in sed: 's/^features\./backbone./')",
      .detail = "E_RENAME_RULE"};
}

// Parts between unescaped separators; an escaped separator loses its escape.
std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_pair = text[i] == '\\' && i + 1 < text.size();
    if (is_pair && text[i + 1] == separator) {
      parts.back() += text[++i];
    } else if (is_pair) {
      parts.back() += text[i];
      parts.back() += text[++i];
    } else if (text[i] == separator) {
      parts.emplace_back();
    } else {
      parts.back() += text[i];
    }
  }
  return parts;
}

// sed's `\1`, `&` and `\&` in the words of std::regex: `$1`, `$&`, `&`.
std::string ecma_replacement(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      const char next = text[++i];
      if (next == '0') {
        out += "$&";
      } else if (next >= '1' && next <= '9') {
        out += {'$', '0', next}; // two digits: a digit may follow
      } else {
        out += next;
      }
    } else if (text[i] == '&') {
      out += "$&";
    } else if (text[i] == '$') {
      out += "$$";
    } else {
      out += text[i];
    }
  }
  return out;
}

} // namespace

struct RenameRule::Pattern {
  std::regex regex;
};

Result<RenameRule> RenameRule::parse(std::string_view text) {
  if (text.size() < 4 || text[0] != 's') {
    return bad_rule(text, "expected s/REGEX/REPLACEMENT/");
  }
  const auto parts = parts_of(text.substr(2), text[1]);
  if (parts.size() != 3 || parts[0].empty()) {
    return bad_rule(text, "expected three separators and a pattern");
  }
  if (!parts[2].empty() && parts[2] != "g") {
    return bad_rule(text, "the only flag is g");
  }
  RenameRule rule;
  try {
    rule.pattern_ = std::make_shared<Pattern>(
        Pattern{std::regex(parts[0], std::regex::ECMAScript)});
  } catch (const std::regex_error& error) {
    return bad_rule(text, error.what());
  }
  rule.replacement_ = ecma_replacement(parts[1]);
  rule.is_global_ = !parts[2].empty();
  return rule;
}

Result<std::string> RenameRule::apply(const std::string& key) const {
  const auto refuse = [&key](std::string_view what) -> Error {
    return {
        .code = ErrorCode::kUnsafe,
        .op = "ckpt.edit",
        .message = format("key '{}' cannot be matched: {}", escape(key), what),
        .detail = "E_LIMIT"};
  };
  if (key.size() > kMaxKeyBytes) {
    return refuse("it is longer than 4096 bytes");
  }
  try {
    return std::regex_replace(
        key,
        pattern_->regex,
        replacement_,
        is_global_ ? std::regex_constants::format_default
                   : std::regex_constants::format_first_only);
  } catch (const std::regex_error& error) {
    return refuse(error.what());
  }
}

} // namespace lockstep::ckpt
