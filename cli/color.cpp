// SPDX-License-Identifier: BSD-3-Clause
#include "cli/color.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

#include "cli/usage_errors.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli {
namespace {

std::string_view variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_colorful_terminal() {
  return ::isatty(STDOUT_FILENO) != 0 && variable("NO_COLOR").empty() &&
         variable("TERM") != "dumb" && variable("CI") != "true";
}

} // namespace

Result<bool> wants_color(std::string_view mode) {
  if (mode == "always" || mode == "never") {
    return mode == "always";
  }
  if (mode == "auto") {
    return is_colorful_terminal();
  }
  return usage_error(format(
      "--color; expected auto, always or never, got '{}'",
      escape(mode)));
}

std::string paint(std::string_view text, Tone tone, bool is_on) {
  // Green, red and yellow, told apart by brightness, too.
  constexpr std::array<std::string_view, 3> kCodes{"32", "1;31", "33"};
  return is_on ? format(
                     "\x1b[{}m{}\x1b[0m",
                     kCodes.at(static_cast<std::size_t>(tone)),
                     text)
               : std::string(text);
}

} // namespace lockstep::cli
