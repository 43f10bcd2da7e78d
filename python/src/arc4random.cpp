// SPDX-License-Identifier: BSD-3-Clause
//
// std::random_device of a static libstdc++ calls a function that glibc has
// since 2.36. With this one in its place the wheel runs on older ones.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" [[gnu::visibility("hidden")]] std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  while (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
  }
  return number;
}
