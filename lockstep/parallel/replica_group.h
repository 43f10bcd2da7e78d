// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of a module that run at the same time on several devices, made once
// and kept. CPU replicas share the parameters' memory; those on other devices
// get the parameters in each pass.
//   ReplicaGroup group(net, parse_devices("cpu*2"));
//   TensorList out = group.forward({images}, call);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/optim/optimizer.h"
#include "lockstep/parallel/intra_op_threads.h"
#include "lockstep/parallel/options.h"
#include "lockstep/parallel/traffic.h"
#include "lockstep/tensor/out_arguments.h"

namespace lockstep {

/// What one replica returned, with its structure in words, which has to be the
/// same in all replicas.
using ReplicaOutputs = structure::CallOutputs;

/// Note [Replicas]
/// - Replica 0 is the module itself. With one device `forward` is a plain call;
///   a device that is not the CPU gets the module moved to it at the start, and
///   the inputs in each pass, where the module must still be there.
/// - Every pass starts from the module's buffers; what replicas 1.. do to their
///   own buffers is dropped, so BatchNorm keeps replica 0's statistics.
/// - Replica 0 runs in the caller's thread, and so does each other replica
/// whose
///   thread has not begun by then: Note [Waiting] in worker_pool.h.
/// - Whatever happens to parameters and buffers between two passes, replicas
///   follow it: Note [Following the master] in replica_set.h.
/// - What forward does to an input in place the caller sees, as with one
///   device: Note [Inputs changed in place] in changed_inputs.h.
/// - Leaves that are neither parameters nor inputs get their gradient, or there
///   is an error: Note [Leaves of nobody] in replica_pass.h.
/// - Gradients are summed in replica order; hooks on parameters see the sum,
///   and none is called for a parameter that no replica used.
/// - Random operations: see Note [Replica streams] in random_stream.h for the
///   CPU; other devices draw from the device's own generator.
/// - Plain members changed after construction (a dropout rate) are seen by
///   replicas 1.. after `rebuild()` if the module has `clone()`, else if
///   `factory` sets them; parameters, buffers, `requires_grad`, `train()`,
///   replaced children and tensors are followed by themselves.
///
/// Note [Teams that spin]
/// After an operation of several threads OpenMP's team stays awake for the next
/// one: libgomp's, 300,000 pauses or 5 to 8 ms. CPU replicas leave it no core,
/// so a loss of 30 us, computed by two threads between forward and backward,
/// delays a replica by those milliseconds. `share_threads()` during the loop
/// keeps the caller from waking a team; so does a loss inside forward.
///
/// Threads: calls from several threads run one after the other.
class ReplicaGroup {
 public:
  /// Calls replica `index`, the module given, with its shards.
  /// Threads: all replicas use it at once.
  using Call = std::function<
      ReplicaOutputs(std::size_t index, torch::nn::Module&, const TensorList&)>;

  /// One replica on each of `devices`; the module lives on the first. What
  /// `options` say of devices, but for the output's, is the caller's affair.
  /// `default_factory` makes replicas where `clone()` does not work and there
  /// is no `factory`. Starts the threads; draws no random number.
  /// Errors: throws kInvalidArgument without devices or for devices of several
  /// types, kUnsupported for a module that cannot be copied; and as
  /// `NcclReduce`.
  ReplicaGroup(
      std::shared_ptr<torch::nn::Module> module,
      std::vector<c10::Device> devices,
      const DataParallelOptions& options = {},
      ModuleFactory default_factory = {});
  ~ReplicaGroup();
  ReplicaGroup(const ReplicaGroup&) = delete;
  ReplicaGroup& operator=(const ReplicaGroup&) = delete;

  /// Scatters `inputs`, runs the replicas, gathers each output. Without inputs
  /// the first replica runs alone; with undefined ones only, all do.
  /// Errors: throws ReplicaError for the lowest replica that threw, after all
  /// have ended, kMismatch if replicas return different structures or the
  /// module is not on the first device,
  /// kInvalidArgument inside one of its own replicas, kUnsupported for a graph
  /// that no replica can follow; and as `scatter` and `gather`.
  TensorList forward(const TensorList& inputs, const Call& call);

  [[nodiscard]] std::span<const c10::Device> devices() const;
  [[nodiscard]] structure::Placement placement() const noexcept {
    return placement_;
  }
  /// True if forward is the module's and no more: on the CPU alone.
  [[nodiscard]] bool is_plain() const noexcept {
    return is_plain_;
  }
  /// Replica `index`; 0 is the user's module.
  [[nodiscard]] torch::nn::Module& replica(std::size_t index) const;
  /// The replicas' threads, the caller's for replica 0, to lend to an optimizer
  /// between passes. None with one device. Ownership: they live as long as the
  /// group or the loan.
  [[nodiscard]] Workers workers() const;
  /// Gives the calling thread's own operations (the loss, its gradient) as many
  /// threads as a replica's have, while it lives: Note [Teams that spin].
  /// nullptr where replicas leave the caller its cores: with one device and
  /// with devices other than the CPU; and if `IntraOpThreadsGuard` is not
  /// available.
  [[nodiscard]] std::unique_ptr<parallel::IntraOpThreadsGuard> share_threads()
      const;
  /// What this group moved between devices; gradients of connected graphs are
  /// not counted.
  [[nodiscard]] parallel::Traffic& traffic() const;
  /// Makes replicas 1.. anew from the module.
  void rebuild();
  /// The next pass sends all parameters, whatever their versions say: with
  /// `trust_versions`, after writes that they may not count.
  void forget_sent();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  structure::Placement placement_ = {};
  bool is_plain_ = false;
};

} // namespace lockstep
