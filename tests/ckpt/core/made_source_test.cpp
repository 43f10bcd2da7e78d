// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/made_source.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "lockstep/ckpt/core/swapped_storage.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

class FourBytesMade final : public internal::MadeSource {
 public:
  FourBytesMade() : MadeSource(4) {}
  Status stream(const BlockVisitor& visit) override {
    ++made;
    LOCKSTEP_TRY(visit(as_byte_span("ab")));
    return visit(as_byte_span("cd"));
  }

  int made = 0;
};

TEST(MadeSource, IsMadeOnceFromFrontToEndAndThenDropped) {
  FourBytesMade source;
  std::vector<std::byte> scratch;
  for (int reading = 1; reading <= 3; ++reading) {
    EXPECT_EQ(as_text(*source.view(0, 3, scratch)), "abc");
    EXPECT_EQ(as_text(*source.view(3, 1, scratch)), "d");
    EXPECT_EQ(source.made, std::min(reading, 2));
  }
}

TEST(MadeSource, IsKeptForWhoAsksForAll) {
  FourBytesMade source;
  std::vector<std::byte> scratch;
  EXPECT_EQ(as_text(*source.view(0, 1, scratch)), "a");
  const ByteSpan all = *source.load();
  EXPECT_EQ(as_text(all), "abcd");
  EXPECT_EQ(source.view(2, 2, scratch)->data(), all.data() + 2);
  EXPECT_EQ(source.load()->data(), all.data());
  EXPECT_EQ(source.made, 1);
}

// Numbers of four bytes, and two bytes that are no whole number.
TEST(SwappedStorage, TurnsTheNumbersThatARangeTouches) {
  const auto source = swapped_storage(
      std::make_shared<OwnedBytes>("abcdefghij"),
      10,
      DType::kFloat32);
  constexpr std::string_view kTurned = "dcbahgfeij";
  std::vector<std::byte> scratch;
  for (std::uint64_t from = 0; from <= kTurned.size(); ++from) {
    for (std::uint64_t size = 0; from + size <= kTurned.size(); ++size) {
      EXPECT_EQ(
          as_text(*source->view(from, size, scratch)),
          kTurned.substr(from, size));
    }
  }
  std::string streamed;
  EXPECT_TRUE(source->stream([&streamed](ByteSpan block) {
    streamed += as_text(block);
    return Status();
  }));
  EXPECT_EQ(streamed, kTurned);
  EXPECT_EQ(as_text(*source->load()), kTurned);
}

} // namespace
} // namespace lockstep::ckpt
