// SPDX-License-Identifier: BSD-3-Clause
//
// nccl_backend.cpp for a LibTorch without CUDA.
#include "lockstep/distributed/group/nccl_backend.h"

namespace lockstep::dist::internal {

namespace {

Error not_built() {
  return {
      .code = ErrorCode::kUnavailable,
      .op = "dist.init",
      .message = "Distributed package doesn't have NCCL built in",
      .hint = "use the backend gloo, or build with a CUDA wheel of torch",
      .detail = "E_BACKEND"};
}

} // namespace

std::optional<Error> nccl_error() {
  return not_built();
}

c10::intrusive_ptr<c10d::Backend> nccl_backend(
    const c10::intrusive_ptr<c10d::Store>& /*store*/,
    int /*rank*/,
    int /*size*/,
    const BackendOptions& /*options*/) {
  raise(not_built());
}

} // namespace lockstep::dist::internal
