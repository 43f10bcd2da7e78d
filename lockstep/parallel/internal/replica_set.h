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
// changes are counted may promise it (`trust_versions`): a parameter is then
// sent when its count or its memory is another one than at the last transfer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/parallel/internal/broadcast.h"
#include "lockstep/parallel/internal/module_copy.h"
#include "lockstep/parallel/internal/module_parts.h"
#include "lockstep/parallel/internal/parameter_rows.h"
#include "lockstep/parallel/internal/replica_pass.h"
#include "lockstep/parallel/replica_group.h"

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep::parallel {

/// Threads: `follow` by one thread while no replica runs; the rest may be read
/// by all replicas.
class ReplicaSet {
 public:
  /// `default_factory` makes replicas where `clone()` does not work, if they
  /// have the module's parameters and buffers. Warns of children that replicas
  /// share if it `warns`.
  /// Errors: throws kUnsupported if `master` cannot be cloned and there is no
  /// factory, kMismatch if the factory's module has other parameters.
  ReplicaSet(
      std::shared_ptr<torch::nn::Module> master,
      std::vector<c10::Device> devices,
      DataParallelOptions options,
      ModuleFactory default_factory = {},
      bool warns = true);
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

  /// Where the graphs of replica `replica` end.
  [[nodiscard]] const GraphEnds& ends(std::size_t replica) const noexcept {
    return ends_[replica];
  }

  /// Brings the first `used` replicas in line with the master: replaced
  /// children or parameters, memory, values, `requires_grad`, `train()`,
  /// buffers. One walk over the parameters, whose marks `check_unchanged`
  /// compares. `traffic` counts what was sent.
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
  /// After forward of replica `replica`, in its thread: the name of a module or
  /// parameter that it registered, of which each replica has another one.
  [[nodiscard]] std::string registered(std::size_t replica) const {
    return parts_[replica].added();
  }

  /// After forward of replica `replica`, in its thread.
  /// Errors: throws kInvalidArgument that names a parameter that is not as
  /// `follow` left it.
  void check_unchanged(std::size_t replica) const;

 private:
  /// Copies to one replica, and their rows.
  struct Sending {
    TensorList from = {};
    TensorList to = {};
    std::vector<std::size_t> rows = {};
  };
  /// A parameter of a replica, as forward finds it.
  struct LeafMark {
    const at::Tensor* leaf = nullptr;
    SourceMark mark = {};
    std::size_t row = 0;
  };

  void make_replicas();
  void link(std::vector<ModuleParts> parts);
  void follow_structure();
  bool try_link_again();
  [[nodiscard]] bool graph_is_old() const;
  Moved follow_parameters(std::size_t replica);
  void bring(
      std::size_t row,
      std::size_t replica,
      Sending& changed,
      Sending& as_before);
  void follow_modes(std::size_t replica);
  void check_device(const std::string& name, const at::Tensor& tensor) const;

  std::vector<c10::Device> devices_;
  DataParallelOptions options_;
  ModuleFactory default_factory_;
  bool warns_ = true;
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::vector<StandIns> stand_ins_;
  bool shares_children_ = false;
  // Of each replica; the master's come first.
  std::vector<ModuleParts> parts_;
  std::vector<ParameterRow> rows_;
  std::vector<GraphEnds> ends_;
  // [replica][leaf]
  std::vector<std::vector<LeafMark>> marks_;
  // [replica][row]: what the replica's copy was made from.
  std::vector<std::vector<SourceMark>> sent_;
  // Which of the master's modules train.
  std::vector<bool> modes_;
  // Some row is one of renormed_rows.h.
  bool has_renormed_ = false;
  // [replica][place in the master's parts]
  std::vector<TensorList> buffers_;
  std::vector<std::vector<BufferMark>> buffer_marks_;
  std::vector<std::vector<std::shared_ptr<torch::nn::Module>>> submodules_;
};

} // namespace lockstep::parallel
