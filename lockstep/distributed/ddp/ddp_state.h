// SPDX-License-Identifier: BSD-3-Clause
//
// What DistributedDataParallel holds, and how it is set up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <c10/core/Device.h>
#include <torch/csrc/distributed/c10d/logger.hpp>

#include "lockstep/distributed/ddp/ddp_parts.h"
#include "lockstep/distributed/ddp/ddp_reducer.h"
#include "lockstep/distributed/ddp/output_sink.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/group/group_impl.h"

namespace lockstep {

namespace dist::internal {
/// Units: bytes that are broadcast at once.
constexpr std::size_t kBroadcastBytes = 250U << 20U;
} // namespace dist::internal

struct DistributedDataParallelBase::State {
  dist::ProcessGroup group = {};
  DistributedDataParallelOptions options = {};
  std::shared_ptr<torch::nn::Module> module = {};
  c10::Device device = c10::kCPU;
  std::shared_ptr<dist::internal::Reducer> reducer = {};
  /// After the reducer, which it measures.
  std::shared_ptr<c10d::Logger> logger = {};
  std::shared_ptr<dist::internal::FirstBackward> first_backward = {};
  /// All parameters, also frozen ones.
  std::vector<dist::internal::NamedTensor> parameters = {};
  /// The reducer's, in its order: those that were not frozen when it was made.
  std::vector<at::Tensor> trained = {};
  /// Parameters that the next pass need not look at again: those, and ignored
  /// ones.
  std::unordered_map<const c10::TensorImpl*, at::Tensor> known = {};
  /// All that the module registers, and those of them that are synced.
  std::vector<at::Tensor> registered = {};
  std::vector<at::Tensor> synced = {};
  /// Their versions when they were synced last; empty before.
  std::vector<std::uint32_t> synced_versions = {};
  /// Of the current or the last `join`.
  JoinOptions join = {.enable = false};
  /// The communication hook; empty without one.
  dist::CommHook hook = {};
  bool hooks_are_compared = false;
  /// Whether forward passes take over rank 0's buffers at all.
  bool syncs_buffers = false;
  /// False inside no_sync.
  bool averages = true;
  /// Whether the next forward pass takes over rank 0's buffers.
  bool buffers_are_due = true;

  [[nodiscard]] const c10::intrusive_ptr<c10d::ProcessGroup>& c10d_group()
      const {
    return group.impl().group;
  }
  void collective(const char* name, const std::function<void()>& run) const {
    group.impl().collective(name, run);
  }

  void share_parameters(const dist::internal::DdpParts& parts) const;
  void reduce_by(
      const dist::internal::DdpParts& parts,
      dist::internal::Buckets buckets);
  /// Takes over the buffers of rank `src`.
  void sync_buffers(int src);
  /// The highest of the ranks that are candidates; under `join` any may have
  /// run out of inputs.
  [[nodiscard]] int common_rank(bool is_candidate) const;
  /// Tells the ranks that wait in `join` that this one has not ended yet.
  void tell_not_joined() const;
  /// Whether any rank averages gradients in this pass; `does`: whether this one
  /// does.
  [[nodiscard]] bool any_averages(bool does) const;
  /// What the others do in a pass, without inputs.
  void shadow_pass();
  /// The model of the rank that had inputs longest.
  void take_last_model(bool is_last) const;
  /// Throws kInvalidArgument, and writes it into the logging data.
  [[noreturn]] void refuse_hook(std::string message);
  void register_hook(dist::CommHook given);
  /// Gives the Reducer the hook, if there is one.
  void use_hook();
  /// Once, before the first pass that averages: all ranks have the same hook.
  void compare_hooks();
  /// Before each pass: finds the buffers of now. False if a parameter takes
  /// gradients that is not known.
  bool look_at_module();
  /// Errors: throws kInvalidArgument if a parameter was thawed, or came into
  /// the module, since the Reducer was made: nobody would average its
  /// gradients. Those that are ignored are known from then on.
  void refuse_unknown();
  /// Errors: throws kInvalidArgument if a static graph begins in no_sync: the
  /// Reducer counts the pass, but learns nothing in it.
  void check_first_pass() const;
  /// Errors: throws kUnsupported where gradients that are there cannot stand
  /// for a pass.
  void check_own_gradients() const;
  [[nodiscard]] bool finds_unused() const {
    return options.find_unused_parameters && !options.static_graph;
  }
};

} // namespace lockstep
