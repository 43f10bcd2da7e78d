// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/gunzip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/idx_fixture.h"

namespace lockstep {
namespace {

using test::error_if_any;
using test::flip;
using test::gzip;

std::string text(const SharedBytes& bytes) {
  return {
      bytes.data.get(),
      bytes.data.get() + static_cast<std::ptrdiff_t>(bytes.size)};
}

std::string decode(const std::string& packed, std::uint64_t limit) {
  return text(gunzip(as_byte_span(packed), "x.gz", limit));
}

std::string decode(const std::string& packed) {
  return decode(packed, kMaxDecodedBytes);
}

std::string sample(std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(i * i >> 3);
  }
  return bytes;
}

TEST(Gunzip, DecodesWhatWasPacked) {
  for (const std::size_t size : {0, 1, 100, 100'000, 5'000'000}) {
    const std::string bytes = sample(size);
    EXPECT_EQ(decode(gzip(bytes)), bytes) << size;
  }
}

TEST(Gunzip, DecodesSeveralMembersAndPadding) {
  const std::string first = sample(70'000);
  const std::string second = sample(10);
  const std::string packed = gzip(first) + gzip(second) + std::string(9, '\0');
  EXPECT_EQ(decode(packed), first + second);
}

TEST(Gunzip, RejectsEveryCut) {
  const std::string packed = gzip(sample(3000));
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const auto error = error_if_any([&] { decode(packed.substr(0, size)); });
    ASSERT_TRUE(error) << size;
    EXPECT_EQ(error->code, ErrorCode::kCorrupt) << size;
    EXPECT_EQ(error->path, "x.gz");
    EXPECT_TRUE(error->offset.has_value());
  }
}

// Bytes 4 to 9 of the header (time, flags of the packer, system) carry no
// data; neither do the text bit of the flag byte and the bits that fill up
// byte 10 in front of a stored block.
TEST(Gunzip, FlippedBitGivesErrorOrTheSameBytes) {
  const std::string bytes = sample(600);
  const std::string packed = gzip(bytes);
  for (std::size_t bit = 0; bit < packed.size() * 8; ++bit) {
    const std::string spoiled =
        flip(packed, bit / 8, static_cast<char>(1 << bit % 8));
    const auto error =
        error_if_any([&] { EXPECT_EQ(decode(spoiled), bytes) << bit; });
    if (error) {
      EXPECT_EQ(error->code, ErrorCode::kCorrupt) << bit;
    }
    EXPECT_TRUE(error || (bit >= 24 && bit < 88)) << bit;
  }
}

TEST(Gunzip, RejectsForeignBytesBehindTheStream) {
  const std::string packed = gzip(sample(100));
  const auto error = error_if_any([&] { decode(packed + "junk"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kCorrupt);
  EXPECT_EQ(error->offset, packed.size());
  EXPECT_THAT(error->message, ::testing::HasSubstr("4 foreign bytes"));
}

TEST(Gunzip, RefusesMoreThanTheLimit) {
  const std::string packed = gzip(std::string(1'000'000, 'a'));
  EXPECT_EQ(decode(packed, 1'000'000).size(), 1'000'000);
  const auto error = error_if_any([&] { decode(packed, 999'999); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kUnsafe);
}

TEST(Gunzip, DoesNotTrustTheDeclaredSize) {
  std::string packed = gzip(sample(5000));
  for (std::size_t i = 1; i <= 4; ++i) {
    packed[packed.size() - i] = '\xFF'; // declares 4 GiB
  }
  EXPECT_EQ(error_if_any([&] { decode(packed); })->code, ErrorCode::kCorrupt);
  for (std::size_t i = 1; i <= 4; ++i) {
    packed[packed.size() - i] = '\0'; // declares nothing
  }
  EXPECT_EQ(error_if_any([&] { decode(packed); })->code, ErrorCode::kCorrupt);
}

} // namespace
} // namespace lockstep
