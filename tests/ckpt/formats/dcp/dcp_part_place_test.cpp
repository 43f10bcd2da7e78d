// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/dcp/dcp_part_place.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace lockstep::ckpt::internal {
namespace {

constexpr std::uint64_t kElement = 2;

struct Box {
  std::vector<std::int64_t> offsets = {};
  std::vector<std::int64_t> sizes = {};
  bool is_one_run = false;
};

// The bytes of a tensor of [3, 4, 5] that belong to `box`, in their order.
std::vector<std::uint64_t> bytes_in(const Box& box) {
  std::vector<std::uint64_t> bytes;
  for (std::int64_t i = 0; i < 3 * 4 * 5; ++i) {
    const std::vector<std::int64_t> index{i / 20, i / 5 % 4, i % 5};
    bool is_inside = true;
    for (std::size_t d = 0; d < index.size(); ++d) {
      const std::int64_t from = index[d] - box.offsets[d];
      is_inside = is_inside && from >= 0 && from < box.sizes[d];
    }
    for (std::uint64_t byte = 0; is_inside && byte < kElement; ++byte) {
      bytes.push_back(static_cast<std::uint64_t>(i) * kElement + byte);
    }
  }
  return bytes;
}

TEST(PartPlace, IsThatOfEveryByte) {
  const std::vector<std::int64_t> whole{3, 4, 5};
  for (const Box& box : std::vector<Box>{
           {{0, 0, 0}, {3, 4, 5}, true},
           {{1, 0, 0}, {2, 4, 5}, true},
           {{1, 2, 0}, {1, 2, 5}, true},
           {{2, 3, 1}, {1, 1, 3}, true},
           {{0, 1, 0}, {2, 3, 5}, false},
           {{0, 0, 4}, {3, 4, 1}, false},
           {{1, 1, 1}, {2, 2, 3}, false}}) {
    const PartPlace place(whole, box.offsets, box.sizes, kElement);
    const auto expected = bytes_in(box);
    EXPECT_EQ(place.begin(), expected.front());
    EXPECT_EQ(place.end(), expected.back() + 1);
    EXPECT_EQ(place.is_one_run(), box.is_one_run);
    std::uint64_t before = 0;
    for (std::uint64_t at = 0; at <= 3 * 4 * 5 * kElement; ++at) {
      EXPECT_EQ(place.before(at), before) << at;
      before += std::ranges::binary_search(expected, at) ? 1 : 0;
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::vector<std::byte> bytes(expected.size() - i, std::byte{1});
      std::vector<std::byte> out(120 - expected[i]);
      place.put(i, bytes, expected[i], out);
      for (std::uint64_t at = expected[i]; at < 120; ++at) {
        EXPECT_EQ(
            out[at - expected[i]] == std::byte{1},
            std::ranges::binary_search(expected, at))
            << i << " " << at;
      }
    }
  }
}

TEST(PartPlace, OfAScalarIsItsElement) {
  const PartPlace place({}, {}, {}, 4);
  EXPECT_TRUE(place.is_one_run());
  EXPECT_EQ(place.end(), 4U);
  EXPECT_EQ(place.before(3), 3U);
}

} // namespace
} // namespace lockstep::ckpt::internal
