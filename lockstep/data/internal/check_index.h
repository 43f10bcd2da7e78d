// SPDX-License-Identifier: BSD-3-Clause
//
// The numbers of samples that a dataset is asked for.
#pragma once

#include <cstdint>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {

/// Errors: throws kInvalidArgument (E_DATA_OPTION) for an index outside a
/// dataset of `size` samples.
inline void check_index(std::int64_t index, std::int64_t size) {
  if (index < 0 || index >= size) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "data.read",
         .message = format(
             "index {} is outside the dataset of {} samples",
             index,
             size),
         .detail = "E_DATA_OPTION"});
  }
}

} // namespace lockstep::internal
