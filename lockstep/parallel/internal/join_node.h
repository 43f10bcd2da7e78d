// SPDX-License-Identifier: BSD-3-Clause
//
// The one autograd node that stands for all replicas in the caller's graph.
// Its backward runs the replicas' own backward passes in their threads, sums
// the parameters' gradients in replica order and hands them on, so that hooks,
// accumulation and torch::autograd::grad work as on one device.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <torch/csrc/autograd/edge.h>

#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/internal/nccl_reduce.h"
#include "lockstep/parallel/internal/replica_pass.h"
#include "lockstep/parallel/internal/worker_pool.h"
#include "lockstep/parallel/replica_group.h"

namespace lockstep::parallel {

/// What the passes of a group share with their graphs, which may outlive it.
struct PassContext {
  explicit PassContext(std::vector<c10::Device> its_devices)
      : devices(std::move(its_devices)),
        output_device(devices.front()),
        traffic(devices.size()) {}

  std::vector<c10::Device> devices;
  c10::Device output_device;
  std::int64_t dim = 0;
  Traffic traffic;
  /// Null with one device.
  std::unique_ptr<WorkerPool> pool = {};
  /// Null: see gradient_sum.h.
  std::unique_ptr<NcclReduce> nccl = {};
};

/// One forward of the group, as the node needs it.
struct JoinPlan {
  std::shared_ptr<PassContext> context = {};
  /// The caller's, one per device.
  std::vector<c10::Stream> streams = {};
  /// The caller's tensors that were scattered.
  TensorList inputs = {};
  std::vector<ReplicaPass> passes = {};
};

/// A new node behind the results of `plan`, which takes it over: its edges lead
/// to the parameters, strangers and inputs that take gradients. `used` are the
/// parameters that a replica reaches (`used_masters`).
torch::autograd::Edge make_join_node(JoinPlan plan, const TensorList& used);

} // namespace lockstep::parallel
