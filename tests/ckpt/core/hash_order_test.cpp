// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/hash_order.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace lockstep::ckpt {
namespace {

using Hashes = std::vector<std::uint64_t>;

constexpr std::uint64_t kHighest = ~std::uint64_t{0};

std::vector<std::size_t> places_of(const Hashes& hashes) {
  HashOrder order(hashes);
  std::vector<std::size_t> places;
  for (const HashOrder::Entry& entry : order.entries()) {
    EXPECT_EQ(entry.hash, hashes[entry.place]);
    places.push_back(entry.place);
  }
  return places;
}

std::vector<std::size_t> sorted_places(const Hashes& hashes) {
  std::vector<std::size_t> places(hashes.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = i;
  }
  std::ranges::stable_sort(places, {}, [&](std::size_t i) {
    return hashes[i];
  });
  return places;
}

TEST(HashOrder, SortsAnyHashes) {
  std::mt19937_64 random(7);
  for (const std::size_t count : {0U, 1U, 2U, 3U, 31U, 1000U}) {
    for (const std::uint64_t most : {kHighest, std::uint64_t{9}}) {
      Hashes hashes(count);
      std::ranges::generate(hashes, [&] { return random() % most; });
      EXPECT_EQ(places_of(hashes), sorted_places(hashes)) << count;
    }
  }
  EXPECT_EQ(places_of({kHighest, 0, kHighest - 1, 0}).size(), 4U);
}

TEST(HashOrder, SeesEqualHashes) {
  EXPECT_FALSE(HashOrder().has_equal());
  EXPECT_FALSE(HashOrder(Hashes{5}).has_equal());
  EXPECT_FALSE(HashOrder(Hashes{5, 6, kHighest, 0}).has_equal());
  EXPECT_TRUE(HashOrder(Hashes{5, kHighest, 6, kHighest}).has_equal());
}

TEST(HashOrder, GivesAllEntriesOfAHash) {
  const Hashes hashes{7, kHighest, 7, 0, kHighest - 1};
  const HashOrder order(hashes);
  for (const std::uint64_t hash : hashes) {
    const auto near = order.near(hash);
    EXPECT_EQ(
        std::ranges::count(near, hash, &HashOrder::Entry::hash),
        std::ranges::count(hashes, hash));
    EXPECT_TRUE(std::ranges::is_sorted(near, {}, &HashOrder::Entry::hash));
  }
  EXPECT_TRUE(HashOrder().near(7).empty());
}

} // namespace
} // namespace lockstep::ckpt
