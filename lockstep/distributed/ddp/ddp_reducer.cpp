// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/ddp/ddp_reducer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::dist::internal {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kFirstBucketBytes = kMiB;
constexpr std::int64_t kBucketBytes = 25 * kMiB;

/// How many bytes of gradients go together.
struct BucketLimits {
  std::vector<std::size_t> initial = {};
  std::int64_t first = kFirstBucketBytes;
  std::int64_t others = kBucketBytes;
};

BucketLimits limits_of(const DistributedDataParallelOptions& options) {
  BucketLimits limits;
  if (options.bucket_cap_mb) {
    limits.others = static_cast<std::int64_t>(*options.bucket_cap_mb * kMiB);
    limits.first = limits.others;
  }
  if (options.static_graph || !options.find_unused_parameters) {
    // The order of gradients is not known yet: one bucket for each dtype.
    limits.initial = {std::numeric_limits<std::int64_t>::max()};
  } else if (options.bucket_cap_mb) {
    limits.initial = {static_cast<std::size_t>(limits.others)};
  } else {
    limits.initial = {
        static_cast<std::size_t>(limits.first),
        static_cast<std::size_t>(limits.others)};
  }
  return limits;
}

std::unordered_map<std::size_t, std::string> names_of(
    const std::vector<NamedTensor>& named) {
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < named.size(); ++i) {
    names[i] = named[i].name;
  }
  return names;
}

/// Newer versions of LibTorch also take a limit for each bucket.
template <class R, class... Arguments>
std::shared_ptr<R> new_reducer(Arguments&&... arguments) {
  using Limits = std::vector<std::int64_t>;
  if constexpr (std::is_constructible_v<R, Arguments..., Limits>) {
    return std::make_shared<R>(std::forward<Arguments>(arguments)..., Limits());
  } else {
    return std::make_shared<R>(std::forward<Arguments>(arguments)...);
  }
}

} // namespace

// In which order gradients come is not known yet.
Buckets first_buckets(
    const DdpParts& parts,
    const DistributedDataParallelOptions& options) {
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
      tensors_of(parts.trained),
      limits_of(options).initial,
      parts.is_sparse));
  // About in the reverse order of the parameters.
  std::ranges::reverse(buckets);
  return buckets;
}

Buckets saved_buckets(const BucketLayout& layout, std::size_t count) {
  Buckets buckets;
  std::vector<std::size_t> all;
  for (const auto& bucket : layout) {
    buckets.emplace_back(bucket.begin(), bucket.end());
    all.insert(all.end(), bucket.begin(), bucket.end());
  }
  std::ranges::sort(all);
  bool is_complete = all.size() == count;
  for (std::size_t i = 0; i < all.size() && is_complete; ++i) {
    is_complete = all[i] == i;
  }
  if (!is_complete) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "dist.ddp",
         .message = format(
             "the saved buckets hold {} parameters; expected each of the "
             "model's {} once",
             all.size(),
             count),
         .hint = "save and load them with the same model",
         .detail = "E_BAD_STATE"});
  }
  return buckets;
}

std::shared_ptr<Reducer> make_reducer(
    const DdpParts& parts,
    const DistributedDataParallelOptions& options,
    const c10::intrusive_ptr<c10d::ProcessGroup>& group,
    Buckets buckets) {
  const BucketsOutOfSight guard;
  const BucketLimits limits = limits_of(options);
  return new_reducer<Reducer>(
      tensors_of(parts.trained),
      std::move(buckets),
      group,
      parts.is_sparse,
      limits.others,
      options.find_unused_parameters,
      options.gradient_as_bucket_view,
      names_of(parts.trained),
      limits.first,
      /*skip_all_reduce_unused_params=*/false,
      /*use_python_reducer=*/false);
}

} // namespace lockstep::dist::internal
