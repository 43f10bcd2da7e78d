// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/output_copy.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace lockstep::launch {
namespace {

// A longer line comes out in parts.
constexpr std::size_t kMaxLine = 1U << 20U;

// What cannot be written is dropped: a full disk ends no training.
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
    Console& console,
    std::string prefix)
    : source_(std::move(source)),
      file_(std::move(file)),
      console_(&console),
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
  console_->write(lines);
}

ssize_t OutputCopy::copy_once() {
  std::array<char, 1U << 16U> buffer{};
  const ssize_t size = ::read(source_.get(), buffer.data(), buffer.size());
  if (size > 0) {
    const std::string_view text(buffer.data(), static_cast<std::size_t>(size));
    write_all(file_.get(), text);
    print(text);
  }
  return size;
}

bool OutputCopy::copy() {
  while (!console_->is_behind()) {
    const ssize_t size = copy_once();
    if (size <= 0) {
      return size < 0 && (errno == EAGAIN || errno == EINTR);
    }
  }
  return true;
}

void OutputCopy::finish() {
  int left = 0; // and no more: what a rank left behind may go on printing
  ::ioctl(source_.get(), FIONREAD, &left);
  for (ssize_t size = 1; left > 0 && size > 0;) {
    size = copy_once();
    left -= static_cast<int>(size);
  }
  if (!line_.empty()) {
    print("\n");
  }
}

} // namespace lockstep::launch
