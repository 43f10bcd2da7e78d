// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/output_copy.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace lockstep::launch {
namespace {

// A longer line comes out in parts.
constexpr std::size_t kMaxLine = 1U << 20U;

// What cannot be written is dropped: a full disk or a console that is gone
// ends no training.
void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(descriptor, text.data(), text.size());
    if (done < 0 && errno != EINTR) {
      return;
    }
    text.remove_prefix(done < 0 ? 0 : static_cast<std::size_t>(done));
  }
}

} // namespace

OutputCopy::OutputCopy(
    Descriptor source,
    Descriptor file,
    int console,
    std::string prefix)
    : source_(std::move(source)),
      file_(std::move(file)),
      console_(console),
      prefix_(std::move(prefix)) {}

void OutputCopy::print(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    line_.append(text.substr(0, end));
    if (end == std::string_view::npos && line_.size() < kMaxLine) {
      break;
    }
    lines.append(prefix_).append(line_).append("\n");
    line_.clear();
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  write_all(console_, lines);
}

bool OutputCopy::copy() {
  std::array<char, 1U << 16U> buffer{};
  while (true) {
    const ssize_t size = ::read(source_.get(), buffer.data(), buffer.size());
    if (size == 0) {
      return false;
    }
    if (size < 0) {
      return errno == EAGAIN || errno == EINTR;
    }
    const std::string_view text(buffer.data(), static_cast<std::size_t>(size));
    write_all(file_.get(), text);
    print(text);
  }
}

void OutputCopy::finish() {
  if (!line_.empty()) {
    print("\n");
  }
}

} // namespace lockstep::launch
