// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/report/console.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep::report {
namespace {

// Blank from the cursor to the end of the screen. The cursor is never hidden,
// so that a killed program leaves a usable terminal.
constexpr std::string_view kClear = "\x1b[J";

// Columns of a text with colours.
int columns_of(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const std::size_t colour = text.find('\x1b');
    columns += display_width(text.substr(0, colour));
    const std::size_t end = text.find('m', colour);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return columns;
}

} // namespace

Console::Console(Screen& screen) : screen_(screen) {}

Console::Console(int descriptor)
    : own_screen_(std::make_unique<DescriptorScreen>(descriptor)),
      screen_(*own_screen_) {}

Console::~Console() {
  keep_status();
}

// Terminals break a line that is longer than the window was made: the status
// takes several rows then, and the cursor is on the last one.
std::string Console::to_status_start() const {
  const int breaks =
      std::max(columns_of(status_) - 1, 0) / std::max(screen_.width(), 1);
  return breaks == 0 ? "\r" : format("\r\x1b[{}A", breaks);
}

void Console::print(std::string_view text) {
  const std::scoped_lock lock(mutex_);
  std::string out;
  if (!status_.empty()) {
    out += to_status_start();
    out += kClear;
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
  screen_.write(to_status_start() + status + std::string(kClear));
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
