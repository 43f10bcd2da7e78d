// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/regex.h"

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/fixed_limits.h"

namespace lockstep::ckpt::internal {
namespace {

PCRE2_SPTR units(std::string_view text) {
  // A view of nothing may have no address; PCRE2 asks for one.
  return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
}

std::string reason(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

Error match_error(int code) {
  const bool is_limit = code == PCRE2_ERROR_MATCHLIMIT ||
                        code == PCRE2_ERROR_DEPTHLIMIT ||
                        code == PCRE2_ERROR_HEAPLIMIT;
  return {
      .code = is_limit ? ErrorCode::kUnsafe : ErrorCode::kInvalidArgument,
      .message = reason(code),
      .detail = is_limit ? "E_LIMIT" : ""};
}

using Context =
    std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)>;

Context bounded() {
  Context context(
      pcre2_match_context_create(nullptr),
      &pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), kMaxPatternSteps);
  pcre2_set_heap_limit(context.get(), kMaxPatternKibibytes);
  return context;
}

} // namespace

void Regex::Free::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

// PCRE2 could match beside bytes that are not UTF-8 (MATCH_INVALID_UTF), but
// then it checks the rest of the text once per match: quadratic for long names.
Result<Regex> Regex::compile(std::string_view pattern) {
  int code = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* compiled = pcre2_compile(
      units(pattern),
      pattern.size(),
      PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY,
      &code,
      &offset,
      nullptr);
  if (compiled == nullptr) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .message = format("{} at character {}", reason(code), offset)};
  }
  return Regex(compiled);
}

Result<bool> Regex::matches(std::string_view text) const {
  if (!is_utf8(text)) {
    return false;
  }
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>
      groups(
          pcre2_match_data_create_from_pattern(code_.get(), nullptr),
          &pcre2_match_data_free);
  const int code = pcre2_match(
      code_.get(),
      units(text),
      text.size(),
      0,
      0,
      groups.get(),
      bounded().get());
  if (code < 0 && code != PCRE2_ERROR_NOMATCH) {
    return match_error(code);
  }
  return code >= 0;
}

Result<std::string> Regex::replace(
    std::string_view text,
    std::string_view replacement,
    bool all) const {
  if (!is_utf8(text)) {
    return std::string(text);
  }
  const std::uint32_t options = PCRE2_SUBSTITUTE_OVERFLOW_LENGTH |
                                PCRE2_SUBSTITUTE_UNSET_EMPTY |
                                (all ? PCRE2_SUBSTITUTE_GLOBAL : 0U);
  const Context context = bounded();
  std::string out(text.size() + replacement.size() + 64, '\0');
  for (;;) {
    PCRE2_SIZE size = out.size();
    const int code = pcre2_substitute(
        code_.get(),
        units(text),
        text.size(),
        0,
        options,
        nullptr,
        context.get(),
        units(replacement),
        replacement.size(),
        reinterpret_cast<PCRE2_UCHAR*>(out.data()),
        &size);
    if (code >= 0) {
      out.resize(size);
      return out;
    }
    if (code != PCRE2_ERROR_NOMEMORY || size <= out.size()) {
      return match_error(code);
    }
    out.resize(size);
  }
}

std::uint32_t Regex::groups() const {
  std::uint32_t count = 0;
  pcre2_pattern_info(code_.get(), PCRE2_INFO_CAPTURECOUNT, &count);
  return count;
}

} // namespace lockstep::ckpt::internal
