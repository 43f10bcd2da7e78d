// SPDX-License-Identifier: BSD-3-Clause
//
// How a program shows an error: its text, then the name that `lockstep explain`
// looks up; and words of a command line to type again.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep {

/// `to_string(error)`, and the detail at its end: " (E_CRC)".
inline std::string to_program_text(const Error& error) {
  std::string text = to_string(error);
  if (!error.detail.empty()) {
    text += text.ends_with(' ') ? "(" : " (";
    text += error.detail + ")";
  }
  return text;
}

/// `text` as one word of a shell.
inline std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) {
    return std::string(text);
  }
  std::string word = "'";
  for (const char letter : text) {
    word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return word + "'";
}

} // namespace lockstep
