// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/hash_order.h"

#include <algorithm>
#include <numeric>

namespace lockstep::ckpt {

HashOrder::HashOrder(std::span<const std::uint64_t> hashes)
    : entries_(hashes.size()) {
  const std::size_t buckets = std::bit_ceil(hashes.size() + 2);
  starts_.assign(buckets + 1, 0);
  shift_ = 64 - std::countr_zero(buckets);
  for (const std::uint64_t hash : hashes) {
    ++starts_[bucket_of(hash)];
  }
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  for (std::size_t place = hashes.size(); place-- > 0;) {
    const std::uint64_t hash = hashes[place];
    entries_[--starts_[bucket_of(hash)]] = {.hash = hash, .place = place};
  }
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const std::size_t size = starts_[bucket + 1] - starts_[bucket];
    if (size > 1) {
      std::ranges::sort(
          entries().subspan(starts_[bucket], size),
          [](const Entry& a, const Entry& b) {
            return a.hash != b.hash ? a.hash < b.hash : a.place < b.place;
          });
    }
  }
}

bool HashOrder::has_equal() const noexcept {
  return std::ranges::adjacent_find(entries_, {}, &Entry::hash) !=
         entries_.end();
}

std::span<const HashOrder::Entry> HashOrder::near(
    std::uint64_t hash) const noexcept {
  if (entries_.empty()) {
    return {};
  }
  const std::size_t first = starts_[bucket_of(hash)];
  return std::span(entries_).subspan(
      first,
      starts_[bucket_of(hash) + 1] - first);
}

} // namespace lockstep::ckpt
