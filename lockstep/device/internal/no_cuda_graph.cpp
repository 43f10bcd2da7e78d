// SPDX-License-Identifier: BSD-3-Clause
//
// cuda_graph.cpp for a LibTorch without CUDA.
#include "lockstep/base/error.h"
#include "lockstep/device/internal/cuda_graph.h"

namespace lockstep::internal {

std::unique_ptr<DeviceGraph> make_cuda_graph(c10::Device /*device*/) {
  raise(
      {.code = ErrorCode::kUnavailable,
       .op = "device.graph",
       .message = "this build has no CUDA graphs",
       .hint = "build with a CUDA wheel of torch and the headers of "
               "nvidia-cuda-runtime and nvidia-cuda-crt beside it",
       .detail = "E_BACKEND"});
}

} // namespace lockstep::internal
