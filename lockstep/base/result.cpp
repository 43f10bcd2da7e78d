// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/result.h"

namespace lockstep::internal {

void ErrorDeleter::operator()(Error* error) const noexcept {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the deleter of ErrorPtr
  delete error;
}

ErrorPtr make_error_ptr(Error error) {
  return ErrorPtr(new Error(std::move(error)));
}

} // namespace lockstep::internal
