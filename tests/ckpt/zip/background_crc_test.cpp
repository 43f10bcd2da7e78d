// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/background_crc.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "lockstep/ckpt/crc32.h"

namespace lockstep::ckpt {
namespace {

std::vector<std::byte> some_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = 1;
  for (std::byte& b : bytes) {
    state = state * 1664525U + 1013904223U;
    b = static_cast<std::byte>(state >> 24U);
  }
  return bytes;
}

TEST(BackgroundCrc, IsTheCrcWhoeverComputesIt) {
  const auto bytes = some_bytes(3 << 20);
  const std::uint32_t expected = crc32(bytes, 7);
  BackgroundCrc background;
  for (int i = 0; i < 200; ++i) {
    auto job = background.start(bytes, 7);
    if (i % 2 == 1) {
      std::this_thread::yield(); // let the other thread begin
    }
    ASSERT_EQ(job.finish(), expected) << i;
  }
}

TEST(BackgroundCrc, AJobThatIsDroppedEndsFirst) {
  BackgroundCrc background;
  for (int i = 0; i < 50; ++i) {
    auto bytes = std::make_unique<std::vector<std::byte>>(some_bytes(1 << 20));
    const auto job = background.start(*bytes, 0);
    // Destroyed in this order: the job, which waits, then its bytes. The
    // sanitizers watch.
  }
  const auto bytes = some_bytes(1 << 20);
  EXPECT_EQ(background.start(bytes, 0).finish(), crc32(bytes));
}

} // namespace
} // namespace lockstep::ckpt
