// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "lockstep/base/strings.h"

namespace lockstep::report {
namespace {

bool is_utf8_locale(const Environment& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    auto value = environment(name);
    if (!value || value->empty()) {
      continue;
    }
    const std::string lower = lower_case(*value);
    return lower.ends_with("utf-8") || lower.ends_with("utf8");
  }
  return false;
}

} // namespace

std::optional<std::string> process_environment(const std::string& name) {
  // Nothing in Lockstep changes the environment.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

TerminalTraits decide_traits(bool is_terminal, const Environment& environment) {
  const auto is_set = [&](const char* name) {
    return !environment(name).value_or("").empty();
  };
  const std::string ci = environment("CI").value_or("");
  const bool plain = is_set("NO_COLOR") || environment("TERM") == "dumb" ||
                     !(ci.empty() || ci == "false" || ci == "0");
  return {
      .is_terminal = is_terminal,
      .colour = is_terminal && !plain,
      .animated = is_terminal && !plain,
      .unicode = is_utf8_locale(environment)};
}

DescriptorScreen::DescriptorScreen(
    int descriptor,
    const Environment& environment)
    : descriptor_(descriptor),
      traits_(decide_traits(::isatty(descriptor) == 1, environment)) {}

int DescriptorScreen::width() const {
  constexpr int kUsualColumns = 80;
  struct ::winsize size = {};
  const bool known =
      ::ioctl(descriptor_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

void DescriptorScreen::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor_, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      return; // a closed or full stderr must not stop a training run
    }
  }
}

} // namespace lockstep::report
