// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/crc32.h"

#include <random>
#include <string>

#include <gtest/gtest.h>
#include <libdeflate.h>

namespace lockstep::ckpt {
namespace {

std::string random_bytes(std::size_t size) {
  std::mt19937 random(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

TEST(Crc32, KnownValues) {
  EXPECT_EQ(crc32(as_byte_span("")), 0U);
  EXPECT_EQ(crc32(as_byte_span("123456789")), 0xCBF43926U);
}

// Short runs and long ones take different ways.
TEST(Crc32, EveryLengthAndAlignmentEqualsLibdeflate) {
  const std::string bytes = random_bytes(5000);
  for (std::size_t begin = 0; begin < 67; begin += 3) {
    for (std::size_t size = 0; begin + size <= bytes.size(); size += 13) {
      const auto part = as_byte_span(bytes).subspan(begin, size);
      const std::uint32_t seed = size % 2 == 0 ? 0 : 0x12345678;
      const std::uint32_t wanted =
          size == 0 ? seed : libdeflate_crc32(seed, part.data(), part.size());
      ASSERT_EQ(crc32(part, seed), wanted) << begin << ", " << size;
    }
  }
}

TEST(Crc32, GoesOnAnywhere) {
  const std::string bytes = random_bytes(20'000);
  const auto all = as_byte_span(bytes);
  for (const std::size_t cut :
       {0U, 1U, 255U, 256U, 1023U, 1024U, 9999U, 20'000U}) {
    EXPECT_EQ(crc32(all.subspan(cut), crc32(all.first(cut))), crc32(all));
  }
}

} // namespace
} // namespace lockstep::ckpt
