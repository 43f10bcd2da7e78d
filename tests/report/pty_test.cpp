// SPDX-License-Identifier: BSD-3-Clause
//
// The progress line on a real terminal device.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <thread>

#include <gmock/gmock.h>
#include <pty.h>

#include "lockstep/report/progress_line.h"
#include "tests/report/virtual_terminal.h"

namespace lockstep::report {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;

// The two ends of a terminal; everything printed is collected by a thread.
class Pty {
 public:
  explicit Pty(unsigned short columns) {
    ::winsize size = window(columns);
    if (::openpty(&master_, &slave_, nullptr, nullptr, &size) != 0) {
      std::abort();
    }
    reader_ = std::jthread([this] {
      std::array<char, 4096> buffer = {};
      while (!text_.ends_with(kEnd)) {
        const ssize_t count = ::read(master_, buffer.data(), buffer.size());
        if (count <= 0) {
          return;
        }
        text_.append(buffer.data(), static_cast<std::size_t>(count));
      }
      text_.pop_back();
    });
  }
  Pty(const Pty&) = delete;
  Pty& operator=(const Pty&) = delete;
  ~Pty() {
    static_cast<void>(finish());
    ::close(slave_);
    ::close(master_);
  }
  [[nodiscard]] int descriptor() const {
    return slave_;
  }
  void resize(unsigned short columns) const {
    const ::winsize size = window(columns);
    ::ioctl(slave_, TIOCSWINSZ, &size);
  }
  // Returns all that was printed; nothing may be printed after it. What is on
  // its way when the program's end is closed can be lost: a mark comes last.
  std::string finish() {
    if (reader_.joinable()) {
      EXPECT_EQ(::write(slave_, &kEnd, 1), 1);
      reader_.join();
    }
    return text_;
  }

 private:
  static constexpr char kEnd = '\4';

  static ::winsize window(unsigned short columns) {
    ::winsize size = {};
    size.ws_row = 24;
    size.ws_col = columns;
    return size;
  }
  int master_ = -1;
  int slave_ = -1;
  std::string text_;
  std::jthread reader_;
};

TEST(ProgressLinePty, LeavesASaneScreen) {
  Pty pty(72);
  DescriptorScreen screen(
      pty.descriptor(),
      [](const std::string& name) -> std::optional<std::string> {
        return name == "LANG" ? std::optional<std::string>("C.UTF-8")
                              : std::nullopt;
      });
  EXPECT_TRUE(screen.traits().animated);
  {
    Console console(screen);
    ProgressLine line(
        {.total = 500,
         .label = "Epoch 1/1",
         .console = &console,
         .refresh = std::chrono::milliseconds(1)});
    for (int step = 1; step <= 500; ++step) {
      line.update({.done = step, .samples = step * 64, .loss = 0.5});
      line.tick();
      if (step == 250) {
        console.print("half way");
      }
    }
    line.finish();
  }
  VirtualTerminal terminal(72);
  terminal.write(pty.finish());
  EXPECT_EQ(terminal.strange(), "");
  EXPECT_THAT(
      terminal.lines(),
      ElementsAre(
          "half way",
          MatchesRegex("Epoch 1/1 500/500 .*0:00:0.*loss: 0.5000"),
          ""));
}

TEST(DescriptorScreenPty, KnowsTheWidthAfterAResize) {
  const Pty pty(72);
  const DescriptorScreen screen(pty.descriptor());
  EXPECT_EQ(screen.width(), 72);
  pty.resize(60);
  EXPECT_EQ(screen.width(), 60);
}

} // namespace
} // namespace lockstep::report
