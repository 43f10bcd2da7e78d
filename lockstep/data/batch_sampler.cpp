// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/samplers.h"

namespace lockstep {

IndexBatches make_batches(
    const std::vector<std::int64_t>& indices,
    std::int64_t batch_size,
    bool drop_last) {
  if (batch_size < 1) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.batches",
         .message = format(
             "batch_size should be a positive integer value, but got "
             "batch_size={}",
             batch_size),
         .detail = "E_DATA_OPTION"});
  }
  IndexBatches batches;
  for (auto begin = indices.begin(); begin != indices.end();) {
    const auto end = begin + std::min(batch_size, indices.end() - begin);
    if (end - begin == batch_size || !drop_last) {
      batches.emplace_back(begin, end);
    }
    begin = end;
  }
  return batches;
}

} // namespace lockstep
