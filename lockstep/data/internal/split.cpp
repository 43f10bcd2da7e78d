// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/split.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

// FNV-1a: where a name comes in its group.
std::uint64_t place_of(std::string_view name, std::int64_t seed) {
  std::uint64_t hash =
      14695981039346656037ULL ^ static_cast<std::uint64_t>(seed);
  for (const char byte : name) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  }
  return hash;
}

// The places of a group from which on samples are for training.
std::uint64_t bound_of(std::vector<std::uint64_t> places, double share) {
  std::ranges::sort(places);
  const auto count = std::ssize(places);
  const auto wanted = static_cast<std::int64_t>(
      std::llround(share * static_cast<double>(count)));
  const auto taken = std::clamp<std::int64_t>(wanted, 1, count - 1);
  return places[static_cast<std::size_t>(taken)];
}

} // namespace

SplitSamples split_samples(
    std::span<const std::int64_t> groups,
    const std::function<std::string(std::int64_t index)>& name_of,
    const SplitOptions& split,
    const std::string& path) {
  if (!(split.val_share > 0 && split.val_share < 1)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.open",
         .message = format(
             "the share of validation must be between 0 and 1, got {}",
             split.val_share),
         .path = path,
         .detail = "E_DATA_OPTION"});
  }
  std::vector<std::uint64_t> places;
  places.reserve(groups.size());
  std::map<std::int64_t, std::vector<std::uint64_t>> places_of;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    places.push_back(
        place_of(name_of(static_cast<std::int64_t>(i)), split.seed));
    places_of[groups[i]].push_back(places.back());
  }
  SplitSamples samples;
  std::map<std::int64_t, std::uint64_t> bounds;
  for (auto& [group, of_group] : places_of) {
    if (of_group.size() == 1) {
      samples.single_groups.push_back(group);
      bounds[group] = 0;
    } else {
      bounds[group] = bound_of(std::move(of_group), split.val_share);
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const bool is_val = places[i] < bounds[groups[i]];
    (is_val ? samples.val : samples.train)
        .push_back(static_cast<std::int64_t>(i));
  }
  return samples;
}

} // namespace lockstep::internal
