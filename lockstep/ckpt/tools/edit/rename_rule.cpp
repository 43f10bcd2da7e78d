// SPDX-License-Identifier: BSD-3-Clause
//
// sed's substitution, as far as keys need it.
#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/tools/regex.h"

namespace lockstep::ckpt {
namespace {

Error bad_rule(std::string_view text, std::string_view what) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "ckpt.edit",
      .message =
          format("'{}' is not a rule for renaming: {}", escape(text), what),
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

// A replacement in the words of Regex, and the highest group it names.
struct Replacement {
  std::string text = {};
  std::uint32_t group = 0;
};

// sed's `\1`, `&`, `\0` and `\&` become `${1}`, `${0}`, `${0}` and `&`.
Replacement replacement_of(std::string_view text) {
  Replacement out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escaped = text[i] == '\\' && i + 1 < text.size();
    const char c = text[is_escaped ? ++i : i];
    if (is_escaped && c >= '0' && c <= '9') {
      out.group = std::max(out.group, static_cast<std::uint32_t>(c - '0'));
      out.text += {'$', '{', c, '}'};
    } else if (!is_escaped && c == '&') {
      out.text += "${0}";
    } else if (c == '$') {
      out.text += "$$";
    } else {
      out.text += c;
    }
  }
  return out;
}

} // namespace

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
  auto regex = internal::Regex::compile(parts[0]);
  if (!regex) {
    return bad_rule(text, regex.error().message);
  }
  Replacement replacement = replacement_of(parts[1]);
  if (replacement.group > regex->groups()) {
    return bad_rule(
        text,
        format(
            "the replacement names group {}, the pattern has {}",
            replacement.group,
            regex->groups()));
  }
  RenameRule rule;
  rule.regex_ = std::make_shared<internal::Regex>(*std::move(regex));
  rule.replacement_ = std::move(replacement.text);
  rule.is_global_ = !parts[2].empty();
  return rule;
}

Result<std::string> RenameRule::apply(const std::string& key) const {
  auto renamed = regex_->replace(key, replacement_, is_global_);
  if (!renamed) {
    Error error = std::move(renamed).error();
    error.op = "ckpt.edit";
    error.message = format(
        "key '{}' cannot be matched: {}",
        escape(key, 80),
        error.message);
    return error;
  }
  return renamed;
}

} // namespace lockstep::ckpt
