// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/train/strategy.h"

namespace lockstep::train {
namespace {

BucketLayout read_buckets(const ckpt::Value& saved) {
  BucketLayout layout;
  const ckpt::List* buckets = saved.as_list();
  if (buckets == nullptr) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = "'buckets' must be a list",
         .detail = "E_BAD_STATE"});
  }
  for (const ckpt::Value& bucket : buckets->items) {
    auto& numbers = layout.emplace_back();
    const ckpt::List* items = bucket.as_list();
    for (std::size_t i = 0; items != nullptr && i < items->items.size(); ++i) {
      const std::int64_t* number = items->items[i].as_int();
      numbers.push_back(number == nullptr ? -1 : *number);
    }
  }
  return layout;
}

} // namespace

StatePart bucket_part(Strategy& strategy) {
  return {
      .key = "buckets",
      .save =
          [&strategy](ValueBuilder&) {
            ckpt::List buckets;
            for (const auto& bucket : strategy.bucket_layout()) {
              ckpt::List numbers;
              numbers.items.assign(bucket.begin(), bucket.end());
              buckets.items.emplace_back(std::move(numbers));
            }
            return ckpt::Value(std::move(buckets));
          },
      .load =
          [&strategy](const ckpt::Value& saved) {
            const BucketLayout layout = read_buckets(saved);
            if (!layout.empty()) {
              strategy.set_bucket_layout(layout);
            }
          },
      .if_missing = IfMissing::kIgnore};
}

} // namespace lockstep::train
