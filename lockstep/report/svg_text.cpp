// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/svg_text.h"

#include "lockstep/base/strings.h"

namespace lockstep::report {

std::string svg_text(std::string_view text) {
  std::string out;
  for (const char c : escape(text)) {
    out += c == '<'   ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '&' ? "&amp;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  }
  return out;
}

} // namespace lockstep::report
