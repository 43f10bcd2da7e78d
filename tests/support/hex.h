// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes as text for an oracle's standard input.
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/strings.h"

namespace lockstep::test {

/// Two lower-case digits for each byte.
inline std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    text += format("{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

} // namespace lockstep::test
