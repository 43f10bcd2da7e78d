// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/read_error.h"

#include <utility>

namespace lockstep::ckpt {

Error read_error(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::string hint) {
  return {
      .code = code,
      .op = "ckpt.read",
      .message = std::move(message),
      .hint = std::move(hint),
      .detail = std::string(detail)};
}

Error corrupt_file(
    std::string_view detail,
    std::string message,
    std::string record,
    std::optional<std::uint64_t> offset) {
  Error error = read_error(ErrorCode::kCorrupt, detail, std::move(message));
  error.record = std::move(record);
  error.offset = offset;
  return error;
}

} // namespace lockstep::ckpt
