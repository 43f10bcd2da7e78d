// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/svg_text.h"

#include "lockstep/report/html_text.h"

namespace lockstep::report {

std::string svg_text(std::string_view text) {
  constexpr std::size_t kMostBytes = 80;
  return html_text(text, kMostBytes);
}

} // namespace lockstep::report
