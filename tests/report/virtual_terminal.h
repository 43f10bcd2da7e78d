// SPDX-License-Identifier: BSD-3-Clause
//
// A screen that remembers what a person would see: it understands "\r", "\n",
// "\x1b[K" and colours, wraps long lines, and nothing else.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/report/terminal.h"

namespace lockstep::report {

class VirtualTerminal final : public Screen {
 public:
  explicit VirtualTerminal(
      int width = 80,
      TerminalTraits traits =
          {.is_terminal = true, .colour = false, .animated = true})
      : width_(width), traits_(traits) {}

  [[nodiscard]] TerminalTraits traits() const override {
    return traits_;
  }
  [[nodiscard]] int width() const override {
    return width_;
  }
  void resize(int width) {
    width_ = width;
  }
  void write(std::string_view text) override {
    ++writes_;
    while (!text.empty()) {
      text.remove_prefix(take(text));
    }
  }

  /// The lines on the screen; the cursor is on the last one.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& cells : rows_) {
      lines.push_back(join(cells, ""));
    }
    return lines;
  }
  [[nodiscard]] std::string last_line() const {
    return lines().back();
  }
  [[nodiscard]] int writes() const {
    return writes_;
  }
  /// Escape sequences that were not understood.
  [[nodiscard]] const std::string& strange() const {
    return strange_;
  }

 private:
  // Handles the front of `text`; returns the bytes it took.
  std::size_t take(std::string_view text) {
    if (text[0] == '\r') {
      column_ = 0;
      return 1;
    }
    if (text[0] == '\n') {
      rows_.emplace_back();
      column_ = 0;
      return 1;
    }
    if (text[0] == '\x1b') {
      return take_escape(text);
    }
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    put(std::string(text.substr(0, length)));
    return length;
  }

  std::size_t take_escape(std::string_view text) {
    const std::size_t end = text.find_first_of("Km");
    if (text.starts_with("\x1b[K")) {
      rows_.back().resize(std::min(rows_.back().size(), column_));
    } else if (end == std::string_view::npos || text[end] != 'm') {
      strange_ += text;
    }
    return end == std::string_view::npos ? text.size() : end + 1;
  }

  void put(const std::string& character) {
    if (column_ >= static_cast<std::size_t>(width_)) {
      rows_.emplace_back();
      column_ = 0;
    }
    auto& row = rows_.back();
    row.resize(std::max(row.size(), column_ + 1), " ");
    row[column_++] = character;
  }

  int width_;
  TerminalTraits traits_;
  std::vector<std::vector<std::string>> rows_{1};
  std::size_t column_ = 0;
  int writes_ = 0;
  std::string strange_;
};

} // namespace lockstep::report
