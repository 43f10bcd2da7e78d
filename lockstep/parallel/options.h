// SPDX-License-Identifier: BSD-3-Clause
//
// The options of DataParallel, of its ReplicaGroup and of all behind it.
//   DataParallel model(net, {.devices = "cuda:0,1", .trust_versions = true});
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/device/device_list.h"
#include "lockstep/tensor/make_module.h"

namespace lockstep {

/// How `DataParallel` uses devices.
struct DataParallelOptions {
  /// In the grammar of `parse_devices`, "cpu*2" or "cuda:1,3", or a vector of
  /// torch::Device. Empty: all CUDA devices, else all simulated ones if they
  /// are started, else the CPU, where calls pass straight through.
  DeviceSpec devices = {};
  /// Numbers of CUDA (or started simulated) devices, as in PyTorch, instead of
  /// `devices`.
  std::vector<std::int64_t> device_ids = {};
  /// Where results are gathered, with one device, too; the first if empty.
  DeviceSpec output_device = {};
  /// Dimension that is split and joined.
  std::int64_t dim = 0;
  /// Threads inside one operation of one replica. 0: the process's number
  /// divided by the replicas, at least 1.
  int threads_per_replica = 0;
  /// Makes replicas of a module that `make_module` did not make, that cannot be
  /// cloned and whose class has constructors with arguments. A class with none
  /// is constructed again, its layers' options compared; plain members are then
  /// as the constructor leaves them, parameters and buffers follow the module.
  ModuleFactory factory = {};
  /// Gradients of gradients through several replicas, at the price of speed:
  /// Note [Connected graph] in connected_graph.h.
  bool connected_graph = false;
  /// Sums gradients with NCCL, along the links between GPUs, instead of copying
  /// them to the first: device/internal/nccl.h. NCCL chooses the order of
  /// additions. Not with `connected_graph`, whose sums are autograd's.
  bool nccl = false;
  /// A promise: between two passes parameters change only in ways that
  /// LibTorch's version counters see. Then devices get a parameter only after
  /// it changed, and passes without a step between them (evaluation, gradient
  /// accumulation) copy none. Lockstep's optimizers and loaders keep it, as do
  /// operations on the parameters themselves; LibTorch's SGD, which writes
  /// through `p.data()`, and raw pointers do not. CPU replicas share the memory
  /// and need no promise.
  bool trust_versions = false;
};

} // namespace lockstep
