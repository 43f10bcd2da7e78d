// SPDX-License-Identifier: BSD-3-Clause
//
// How a program shows an error: its text, then the name that `lockstep explain`
// looks up.
#pragma once

#include <string>

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

} // namespace lockstep
