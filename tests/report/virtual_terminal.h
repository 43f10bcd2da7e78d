// SPDX-License-Identifier: BSD-3-Clause
//
// A screen that remembers what a person would see: it understands "\r", "\n",
// "\x1b[nA", "\x1b[J" and colours, breaks lines that are too long, also those
// that a resize makes too long, and nothing else.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
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
  /// Breaks the lines anew. The cursor must be at the end of the last one.
  void resize(int width) {
    width_ = width;
    const std::vector<Row> old = std::exchange(rows_, {Row{}});
    row_ = column_ = 0;
    for (std::size_t i = 0; i < old.size(); ++i) {
      for (const std::string& character : old[i].cells) {
        put(character);
      }
      if (!old[i].goes_on && i + 1 < old.size()) {
        next_row();
      }
    }
  }
  void write(std::string_view text) override {
    ++writes_;
    while (!text.empty()) {
      text.remove_prefix(take(text));
    }
  }

  /// The lines on the screen, as wide as it is.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const Row& row : rows_) {
      lines.push_back(join(row.cells, ""));
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
  struct Row {
    std::vector<std::string> cells = {};
    /// Broken by the width, not by a line feed.
    bool goes_on = false;
  };

  // Handles the front of `text`; returns the bytes it took.
  std::size_t take(std::string_view text) {
    if (text[0] == '\r') {
      column_ = 0;
      return 1;
    }
    if (text[0] == '\n') {
      next_row();
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
    const std::size_t end = text.find_first_of("AJm");
    if (end == std::string_view::npos) {
      strange_ += text;
      return text.size();
    }
    if (text[end] == 'A') {
      const std::string count(text.substr(2, end - 2));
      row_ -= std::min(row_, std::strtoul(count.c_str(), nullptr, 10));
    } else if (text[end] == 'J') {
      rows_.resize(row_ + 1);
      auto& cells = rows_[row_].cells;
      cells.resize(std::min(cells.size(), column_));
      rows_[row_].goes_on = false;
    }
    return end + 1;
  }

  void next_row() {
    ++row_;
    column_ = 0;
    if (row_ == rows_.size()) {
      rows_.emplace_back();
    }
  }

  void put(const std::string& character) {
    if (column_ >= static_cast<std::size_t>(width_)) {
      rows_[row_].goes_on = true;
      next_row();
    }
    auto& cells = rows_[row_].cells;
    cells.resize(std::max(cells.size(), column_ + 1), " ");
    cells[column_++] = character;
  }

  int width_;
  TerminalTraits traits_;
  std::vector<Row> rows_{1};
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  int writes_ = 0;
  std::string strange_;
};

} // namespace lockstep::report
