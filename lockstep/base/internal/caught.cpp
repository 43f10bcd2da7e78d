// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/caught.h"

#include <new>
#include <string>

namespace lockstep {

Error error_of(const std::exception& exception, std::string_view op) {
  if (const auto* own = dynamic_cast<const Exception*>(&exception)) {
    return own->error();
  }
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return {
        .code = ErrorCode::kIo,
        .op = std::string(op),
        .message = "the system gives no more memory",
        .hint = "free memory, or allow more with 'ulimit -v'"};
  }
  return {
      .code = ErrorCode::kInternal,
      .op = std::string(op),
      .message = exception.what(),
      .hint = "this is a bug in Lockstep; please report it"};
}

} // namespace lockstep
