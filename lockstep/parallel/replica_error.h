// SPDX-License-Identifier: BSD-3-Clause
//
// What the caller sees when a replica throws: PyTorch's first line, then the
// replica's own text. The original exception can be thrown again:
//   catch (const ReplicaError& e) { std::rethrow_exception(e.cause()); }
#pragma once

#include <exception>
#include <span>

#include <c10/core/Device.h>

#include "lockstep/base/error.h"

namespace lockstep {

/// "Caught {Type} in replica {i} on device {d}." with the code of a
/// `lockstep::Exception`, kInvalidArgument for any other type.
class [[gnu::visibility("default")]] ReplicaError : public Exception {
 public:
  ReplicaError(Error error, std::size_t replica, std::exception_ptr cause);
  /// Place in the list of devices.
  [[nodiscard]] std::size_t replica() const noexcept {
    return replica_;
  }
  /// What the replica threw.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept {
    return cause_;
  }

 private:
  std::size_t replica_ = 0;
  std::exception_ptr cause_;
};

namespace parallel {

/// Throws `ReplicaError` for the first place in `errors` that is not null.
void rethrow_lowest(
    std::span<const std::exception_ptr> errors,
    std::span<const c10::Device> devices,
    std::string_view op);

} // namespace parallel
} // namespace lockstep
