// SPDX-License-Identifier: BSD-3-Clause
//
// A module's children while LibTorch's clone() runs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/Device.h>
#include <torch/nn/module.h>

namespace lockstep {

/// Copies a module tree with names and parameter lists.
std::shared_ptr<torch::nn::Module> clone_tree(
    const torch::nn::Module& module,
    const std::optional<c10::Device>& device);

/// What `module` registers itself; copies nothing, as LibTorch's
/// named_parameters(), named_buffers() and children() do. Ownership: the
/// module's; tensors may be undefined.
const torch::OrderedDict<std::string, at::Tensor>& own_parameters_of(
    const torch::nn::Module& module);
const torch::OrderedDict<std::string, at::Tensor>& own_buffers_of(
    const torch::nn::Module& module);
const torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>&
own_children_of(const torch::nn::Module& module);

/// The buffers that `module` registers itself and its state_dict has: see
/// `UnsavedBuffers`. Ownership: shares the tensors, which are defined.
std::vector<std::pair<std::string, at::Tensor>> saved_buffers_of(
    const torch::nn::Module& module);

/// True for containers whose children are those of a list of their own.
bool clones_another_list(const torch::nn::Module& module);

/// True for a class that is LibTorch's Cloneable of itself or of a base.
bool is_cloneable(torch::nn::Module& module);

/// `to`, of a Cloneable class, becomes `from`, of the same class: its members
/// are assigned, and both have the same tensors and children.
void assign_module(
    torch::nn::Module& to,
    const std::shared_ptr<torch::nn::Module>& from);

/// Stands for a child in clone(), which assigns its copy to the child that
/// `reset()` registered. If the copy holds the child itself, that child may be
/// the one that is assigned to: it is given as it is, and nothing is lost.
/// Registers what the child does, for a clone() that reads it.
class ChildStandIn : public torch::nn::Module {
 public:
  explicit ChildStandIn(std::shared_ptr<torch::nn::Module> child);

  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<c10::Device>& device = std::nullopt) const override;
  void count_holders() {
    holders_ = child_.use_count();
  }
  [[nodiscard]] const std::shared_ptr<torch::nn::Module>& child() const {
    return child_;
  }
  [[nodiscard]] bool is_held() const {
    return is_held_;
  }
  /// Gives a held child back what it registers: LibTorch's OrderedDict, which
  /// is assigned to itself, is empty then.
  void restore() const;
  [[nodiscard]] bool is_cloned() const {
    return is_cloned_;
  }

 private:
  std::shared_ptr<torch::nn::Module> child_;
  long holders_ = 0;
  mutable bool is_held_ = false;
  mutable bool is_cloned_ = false;
};

/// Exchanges all children of a tree while it lives: a child has one stand-in,
/// however often it is registered. Modules to whose children nothing is
/// assigned keep them: containers, which clone another list of theirs, and
/// classes with a clone() of their own, which may look at the children
/// themselves. Children of containers are given as they are, too, where the
/// copy's container holds them. Threads: no other thread may look at the
/// module's children.
class ChildrenGuard {
 public:
  explicit ChildrenGuard(const torch::nn::Module& root);
  ~ChildrenGuard();
  ChildrenGuard(const ChildrenGuard&) = delete;
  ChildrenGuard& operator=(const ChildrenGuard&) = delete;

  /// Children that a test of their stand-in says something of.
  [[nodiscard]] std::set<const torch::nn::Module*> those_that(
      bool (ChildStandIn::*is)() const) const;
  /// True if the container that reset() of the copy made holds the module's
  /// `child`: it was given. For a container's own clone().
  static bool is_in_container(const torch::nn::Module& child);

 private:
  struct Place {
    torch::nn::Module* parent = nullptr;
    std::string name = {};
    std::shared_ptr<ChildStandIn> stand_in = {};
  };
  void exchange_children(const torch::nn::Module& parent);

  const ChildrenGuard* outer_ = nullptr;
  std::map<const torch::nn::Module*, long> holders_ = {};
  std::vector<Place> places_ = {};
  std::map<const torch::nn::Module*, std::shared_ptr<ChildStandIn>> stand_ins_ =
      {};
  std::set<const torch::nn::Module*> seen_ = {};
};

} // namespace lockstep
