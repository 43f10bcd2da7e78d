// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/console.h"

#include <utility>

namespace lockstep::report {
namespace {

// To the line's start, and blank to its end. The cursor is never hidden, so
// that a killed program leaves a usable terminal.
constexpr std::string_view kClearLine = "\r\x1b[K";

} // namespace

Console::Console(Screen& screen) : screen_(screen) {}

Console::Console(int descriptor)
    : own_screen_(std::make_unique<DescriptorScreen>(descriptor)),
      screen_(*own_screen_) {}

Console::~Console() {
  keep_status();
}

void Console::print(std::string_view text) {
  const std::scoped_lock lock(mutex_);
  std::string out;
  if (!status_.empty()) {
    out += kClearLine;
  }
  out += text;
  out += '\n';
  out += status_;
  screen_.write(out);
}

void Console::set_status(std::string status) {
  const std::scoped_lock lock(mutex_);
  if (!screen_.traits().animated || status == status_) {
    return;
  }
  // One write, and blank only behind the text: no flicker.
  screen_.write("\r" + status + "\x1b[K");
  status_ = std::move(status);
}

void Console::keep_status() {
  const std::scoped_lock lock(mutex_);
  if (!status_.empty()) {
    screen_.write("\n");
    status_.clear();
  }
}

} // namespace lockstep::report
