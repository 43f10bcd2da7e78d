// SPDX-License-Identifier: BSD-3-Clause
//
// The modules of a group. Replica 0 is the user's module; the others have the
// same structure and buffers of their own. On the master's device parameters
// alias the master's memory (each with its own gradient graph), but for those
// that forward itself changes (renormed_rows.h); elsewhere they are copies.
//
// Note [Following the master]
// Before each pass the replicas follow the master. Aliased values cost nothing;
// others are sent, buffers and parameters alike: nothing tells whether a
// parameter changed. LibTorch counts versions, but `p.data()`, through which
// its SGD writes, starts a count of its own, and a pointer is not counted at
// all. To compare the values costs what sending them does. Who knows that all
// changes are counted may promise it (`trusts_versions`): a parameter is then
// sent when its count or its memory is another one than at the last transfer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/parallel/broadcast.h"
#include "lockstep/parallel/module_copy.h"
#include "lockstep/parallel/module_parts.h"
#include "lockstep/parallel/parameter_rows.h"

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep::parallel {

/// How replicas are made and kept.
struct ReplicaSetOptions {
  /// Makes replicas in place of the module's `clone()`.
  ModuleFactory factory = {};
  /// Makes them where `clone()` does not work, if they have the module's
  /// parameters and buffers.
  ModuleFactory default_factory = {};
  /// See Note [Connected graph] in connected_graph.h.
  bool is_connected = false;
  /// See Note [Following the master].
  bool trusts_versions = false;
  /// Of children that replicas share.
  bool warns = true;
};

/// Threads: `follow` by one thread while no replica runs; the rest may be read
/// by all replicas.
class ReplicaSet {
 public:
  /// Errors: throws kUnsupported if `master` cannot be cloned and there is no
  /// factory, kMismatch if the factory's module has other parameters.
  ReplicaSet(
      std::shared_ptr<torch::nn::Module> master,
      std::vector<c10::Device> devices,
      ReplicaSetOptions options);
  ~ReplicaSet();
  ReplicaSet(ReplicaSet&&) noexcept;
  ReplicaSet& operator=(ReplicaSet&&) noexcept;
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;

  [[nodiscard]] const std::vector<c10::Device>& devices() const noexcept {
    return devices_;
  }
  [[nodiscard]] torch::nn::Module& module(std::size_t replica) const {
    return *modules_[replica];
  }
  [[nodiscard]] const std::vector<std::shared_ptr<torch::nn::Module>>& modules()
      const noexcept {
    return modules_;
  }
  [[nodiscard]] const std::vector<ParameterRow>& parameters() const noexcept {
    return rows_;
  }

  /// Brings the first `used` replicas in line with the master: replaced
  /// children or parameters, memory, values, `requires_grad`, `train()`,
  /// buffers. `traffic` counts what was sent.
  /// Errors: throws kMismatch if a tensor of the master is not on device 0, and
  /// ReplicaError for a copy that fails (out of memory); the next call makes up
  /// for it.
  void follow(std::size_t used, Traffic& traffic);
  /// Makes all replicas anew: after a change of plain members of the master,
  /// such as a dropout rate, which `follow` cannot see. After an error they are
  /// as they were.
  void rebuild();
  /// The next `follow` sends all parameters.
  void forget_sent();

  /// True if forward of several replicas calls the same object of a user's
  /// class: they may not run at the same time.
  [[nodiscard]] bool shares_children() const noexcept {
    return shares_children_;
  }
  /// For a guard around the forward of replica `replica`.
  [[nodiscard]] const StandIns& stand_ins(std::size_t replica) const {
    return stand_ins_[replica];
  }
  /// After a pass of the first `used` replicas: the master gets the rows that
  /// replicas shortened. See Note [Renormed rows] in renormed_rows.h.
  void take_renormed(std::size_t used);
  /// After a pass of the first `used` replicas.
  /// Errors: throws kUnsupported that names a module or parameter that forward
  /// registered: each replica has another one.
  void check_registered(std::size_t used) const;

  /// Versions and addresses of a replica's parameters, to compare later.
  [[nodiscard]] std::vector<std::uint64_t> fingerprint(
      std::size_t replica) const;
  /// Errors: throws kInvalidArgument that names the parameter if replica
  /// `replica` no longer has the fingerprint `before`.
  void check_unchanged(
      std::size_t replica,
      const std::vector<std::uint64_t>& before) const;

 private:
  void make_replicas();
  void link(std::vector<ModuleParts> parts);
  void follow_structure();
  bool try_link_again();
  [[nodiscard]] bool graph_is_old() const;
  void follow_flags(std::size_t replica);
  Moved follow_parameters(std::size_t replica);
  Moved follow_buffers(std::size_t replica);
  void check_devices() const;

  std::vector<c10::Device> devices_;
  ReplicaSetOptions options_;
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<StandIns> stand_ins_;
  bool shares_children_ = false;
  // Of each replica; the master's come first.
  std::vector<ModuleParts> parts_;
  std::vector<ParameterRow> rows_;
  // [replica][row]: what the replica's copy was made from.
  std::vector<std::vector<SourceMark>> sent_;
  // [replica][place in the master's parts]
  std::vector<std::vector<at::Tensor>> buffers_;
  std::vector<std::vector<std::shared_ptr<torch::nn::Module>>> submodules_;
};

} // namespace lockstep::parallel
