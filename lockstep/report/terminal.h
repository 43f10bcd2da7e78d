// SPDX-License-Identifier: BSD-3-Clause
//
// What the place that we print to can show, and printing to it.
//   DescriptorScreen screen(STDERR_FILENO);
//   if (screen.traits().animated) { ... }
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::report {

/// What may be printed.
struct TerminalTraits {
  /// A person looks at it: not a file or a pipe.
  bool is_terminal = false;
  /// Colours may be used.
  bool colour = false;
  /// Lines may be overwritten.
  bool animated = false;
  /// Characters beyond ASCII arrive.
  bool unicode = false;

  friend bool operator==(const TerminalTraits&, const TerminalTraits&) =
      default;
};

/// Value of an environment variable, if set.
using Environment =
    std::function<std::optional<std::string>(const std::string& name)>;

/// The environment of this process.
std::optional<std::string> process_environment(const std::string& name);

/// Decides from the variables NO_COLOR, TERM=dumb and CI (each turns colour
/// and animation off) and from the locale (LC_ALL, LC_CTYPE, LANG).
TerminalTraits decide_traits(bool is_terminal, const Environment& environment);

/// A place to print to. Threads: the caller orders the calls.
class Screen {
 public:
  virtual ~Screen() = default;
  [[nodiscard]] virtual TerminalTraits traits() const = 0;
  /// Units: columns, as of now; a window may have been resized.
  [[nodiscard]] virtual int width() const = 0;
  /// Prints at once. What cannot be printed is dropped.
  virtual void write(std::string_view text) = 0;
};

/// An open file descriptor, for example STDERR_FILENO. Does not close it.
class DescriptorScreen final : public Screen {
 public:
  explicit DescriptorScreen(
      int descriptor,
      const Environment& environment = process_environment);
  [[nodiscard]] TerminalTraits traits() const override {
    return traits_;
  }
  /// 80 where the descriptor does not know.
  [[nodiscard]] int width() const override;
  void write(std::string_view text) override;

 private:
  int descriptor_;
  TerminalTraits traits_;
};

} // namespace lockstep::report
