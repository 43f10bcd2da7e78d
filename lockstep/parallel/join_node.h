// SPDX-License-Identifier: BSD-3-Clause
//
// The one autograd node that stands for all replicas in the caller's graph.
// Its backward runs the replicas' own backward passes in their threads, sums
// the parameters' gradients in replica order and hands them on, so that hooks,
// accumulation and torch::autograd::grad work as on one device.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "lockstep/device/nccl.h"
#include "lockstep/parallel/replica_pass.h"
#include "lockstep/parallel/replica_set.h"
#include "lockstep/parallel/scatter_gather.h"
#include "lockstep/parallel/traffic.h"
#include "lockstep/parallel/worker_pool.h"

namespace lockstep::parallel {

/// One forward of the group, as the node needs it.
struct JoinPlan {
  std::shared_ptr<WorkerPool> pool = {};
  std::vector<c10::Device> devices = {};
  /// The caller's, one per device.
  std::vector<c10::Stream> streams = {};
  c10::Device output_device = c10::Device(c10::DeviceType::CPU);
  std::int64_t dim = 0;
  /// The caller's tensors that were scattered.
  TensorList inputs = {};
  std::vector<ReplicaPass> passes = {};
  std::shared_ptr<Traffic> traffic = {};
  /// Null: see gradient_sum.h.
  std::shared_ptr<NcclReduce> nccl = {};
};

/// Gathers the outputs of all passes.
TensorList gather_all(const JoinPlan& plan);

/// As `gather_all`, but with gradients on and something to differentiate the
/// results hang on one new node.
TensorList join(JoinPlan plan, std::span<const ParameterRow> parameters);

} // namespace lockstep::parallel
