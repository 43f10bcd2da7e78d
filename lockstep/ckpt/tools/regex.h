// SPDX-License-Identifier: BSD-3-Clause
//
// Regular expressions for names: Perl's and Python's syntax, by PCRE2. Names
// come from files that may be hostile, so that steps and memory are bounded.
//   LOCKSTEP_ASSIGN(const Regex regex, Regex::compile("^(\\d+)\\."));
//   LOCKSTEP_ASSIGN(const bool found, regex.matches("0.weight"));
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"

struct pcre2_real_code_8;

namespace lockstep::ckpt::internal {

/// A compiled expression. Characters are those of UTF-8; a text that is not
/// matches nothing. Threads: const calls are safe.
class Regex {
 public:
  /// Errors: kInvalidArgument with PCRE2's reason as message.
  static Result<Regex> compile(std::string_view pattern);

  /// True if the expression matches anywhere. Errors: kUnsafe (E_LIMIT) if that
  /// takes too many steps or too much memory.
  [[nodiscard]] Result<bool> matches(std::string_view text) const;

  /// `text` with the first match, or all, replaced. `replacement`: `${n}` is
  /// group n, `${0}` the match, `$$` a dollar. Errors: as `matches`;
  /// kInvalidArgument for a replacement that is not UTF-8.
  [[nodiscard]] Result<std::string>
  replace(std::string_view text, std::string_view replacement, bool all) const;

  /// Number of groups, without the whole match.
  [[nodiscard]] std::uint32_t groups() const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  explicit Regex(pcre2_real_code_8* code) : code_(code) {}

  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

} // namespace lockstep::ckpt::internal
