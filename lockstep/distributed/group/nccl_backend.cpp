// SPDX-License-Identifier: BSD-3-Clause
//
// The one file that names LibTorch's ProcessGroupNCCL, which is in
// libtorch_cuda; that library brings NCCL itself when the program starts.
#define USE_C10D_NCCL
#include "lockstep/distributed/group/nccl_backend.h"

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <torch/cuda.h>

namespace lockstep::dist::internal {
namespace {

class Nccl final : public c10d::ProcessGroupNCCL {
 public:
  using c10d::ProcessGroupNCCL::ProcessGroupNCCL;

  /// LibTorch's warns unless this came first, as Python's
  /// destroy_process_group does.
  ~Nccl() override {
    shutdown();
  }
};

} // namespace

std::optional<Error> nccl_error() {
  if (torch::cuda::device_count() > 0) {
    return std::nullopt;
  }
  return Error{
      .code = ErrorCode::kUnavailable,
      .op = "dist.init",
      .message = "ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
      .hint =
          "use the backend gloo; or see what nvidia-smi and "
          "CUDA_VISIBLE_DEVICES say",
      .detail = "E_BACKEND"};
}

c10::intrusive_ptr<c10d::Backend> nccl_backend(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const BackendOptions& options) {
  auto nccl = c10d::ProcessGroupNCCL::Options::create();
  nccl->timeout = options.timeout;
  nccl->group_name = options.group_name;
  nccl->global_ranks_in_group = options.global_ranks;
  return c10::make_intrusive<Nccl>(store, rank, size, nccl);
}

} // namespace lockstep::dist::internal
