// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/packed_weight.h"

#include <array>

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::kernels {
namespace {

// 3x3 with padding 1 over 2x2 pixels.
TapTable four_pixels() {
  const std::array ones{std::int64_t{1}, std::int64_t{1}};
  const TapLine line(
      2,
      3,
      {.stride = ones, .padding = ones, .dilation = ones},
      0);
  return {line, line};
}

TEST(PackedWeight, HasTheTapOfEachPair) {
  torch::manual_seed(41);
  const TapTable taps = four_pixels();
  const Meeting meeting{.outputs = {1, 2}, .pixels = {0, 2, 3}};
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const auto format :
         {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      const auto w = at::randn({5, 4, 3, 3}).to(type).contiguous(format);
      const auto last =
          pack_weight(w, meeting, taps, at::MemoryFormat::ChannelsLast)
              .view({2, 5, 3, 4});
      const auto first =
          pack_weight(w, meeting, taps, at::MemoryFormat::Contiguous)
              .view({5, 2, 4, 3});
      EXPECT_TRUE(torch::equal(last.permute({1, 0, 3, 2}), first));
      for (std::int64_t q = 0; q < 2; ++q) {
        for (std::int64_t p = 0; p < 3; ++p) {
          const std::int64_t tap = taps.tap(
              meeting.outputs[static_cast<std::size_t>(q)],
              meeting.pixels[static_cast<std::size_t>(p)]);
          EXPECT_TRUE(torch::equal(
              first.select(3, p).select(1, q),
              w.flatten(2).select(2, tap)));
        }
      }
    }
  }
}

TEST(PackedWeight, IsTheWeightWhereItCanBe) {
  const std::array ones{std::int64_t{1}, std::int64_t{1}};
  const std::array zeros{std::int64_t{0}, std::int64_t{0}};
  const TapLine line(
      1,
      1,
      {.stride = ones, .padding = zeros, .dilation = ones},
      0);
  const Meeting all{.outputs = {0}, .pixels = {0}};
  const auto w = at::randn({5, 4, 1, 1});
  for (const auto layout :
       {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const auto packed = pack_weight(w, all, {line, line}, layout);
    EXPECT_EQ(packed.sizes(), at::IntArrayRef({5, 4}));
    EXPECT_EQ(packed.const_data_ptr(), w.const_data_ptr());
  }
}

} // namespace
} // namespace lockstep::kernels
