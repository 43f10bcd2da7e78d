// SPDX-License-Identifier: BSD-3-Clause
//
// What a writer says of a tree that it cannot write.
#pragma once

#include <string>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::ckpt::internal {

inline Error
save_error(ErrorCode code, std::string detail, std::string message) {
  return {
      .code = code,
      .op = "ckpt.save",
      .message = std::move(message),
      .detail = std::move(detail)};
}

} // namespace lockstep::ckpt::internal
