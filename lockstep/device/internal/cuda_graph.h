// SPDX-License-Identifier: BSD-3-Clause
//
// LibTorch's CUDA graph, in a header that needs none of CUDA's. Without
// LibTorch's CUDA libraries no_cuda_graph.cpp stands in for cuda_graph.cpp.
#pragma once

#include <memory>

#include "lockstep/device/device_graph.h"

namespace lockstep::internal {

/// Errors: as `make_device_graph`.
std::unique_ptr<DeviceGraph> make_cuda_graph(c10::Device device);

} // namespace lockstep::internal
