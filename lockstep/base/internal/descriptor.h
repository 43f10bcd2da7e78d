// SPDX-License-Identifier: BSD-3-Clause
//
// An open file descriptor that is closed with its owner.
//   Descriptor file(::open(path, O_RDONLY | O_CLOEXEC));
//   if (!file) { ... }   // errno says why
#pragma once

#include <unistd.h>

#include <utility>

namespace lockstep {

/// Owns a file descriptor, or none.
class Descriptor {
 public:
  Descriptor() = default;
  /// -1: none, as the calls that open a file say it.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    reset();
  }

  /// Closes it now.
  void reset() {
    if (number_ >= 0) {
      ::close(std::exchange(number_, -1));
    }
  }
  /// Hands it over: it is not closed here.
  int release() {
    return std::exchange(number_, -1);
  }
  /// -1 if there is none.
  [[nodiscard]] int get() const {
    return number_;
  }
  [[nodiscard]] explicit operator bool() const {
    return number_ >= 0;
  }

 private:
  int number_ = -1;
};

} // namespace lockstep
