// SPDX-License-Identifier: BSD-3-Clause
//
// The copy's own tensors and children in place of the module's: Note [What a
// module was given] in modules.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/tensor/internal/held_parts.h"
#include "lockstep/tensor/internal/kept_parts.h"

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

struct ModuleCopy;

/// Registers in a copy tensors and children of its own where they are the
/// module's, and gives members of LibTorch's modules the copy's tensors.
class OwnParts {
 public:
  using CopyChild = std::function<ModuleCopy(const torch::nn::Module&)>;

  /// What clone() did with the module's children.
  struct Children {
    /// The copy held them when they were cloned.
    std::set<const torch::nn::Module*> held = {};
    /// They were, if anything was: a child without a clone() is as `reset()`
    /// made it.
    std::optional<std::set<const torch::nn::Module*>> cloned = {};
  };

  /// On `device`, if given; `copy_child` copies a child that is held or that
  /// both trees register.
  OwnParts(
      const KeptParts& kept,
      const std::optional<c10::Device>& device,
      Children children,
      CopyChild copy_child);

  /// Adds what members of the copy may hold to `result.borrowed`.
  void give(const torch::nn::Module& from, ModuleCopy& result);
  /// Adds modules below the root that members of the copy hold.
  void note_held(const HeldParts& parts);

 private:
  void visit(
      const torch::nn::Module& from,
      torch::nn::Module& to,
      const std::string& prefix);
  void visit_children(
      const torch::nn::Module& from,
      torch::nn::Module& to,
      const std::string& prefix);
  void note(const std::string& name, torch::nn::Module& child);
  std::shared_ptr<torch::nn::Module> own_child(const torch::nn::Module& child);
  std::shared_ptr<torch::nn::Module> outline(const torch::nn::Module& child);
  at::Tensor own(const at::Tensor& tensor);

  const KeptParts& kept_;
  std::optional<c10::Device> device_;
  Children clones_;
  CopyChild copy_child_;
  ModuleCopy* result_ = nullptr;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> own_ = {};
  std::unordered_map<
      const torch::nn::Module*,
      std::shared_ptr<torch::nn::Module>>
      children_ = {};
  // What those have.
  std::set<const torch::nn::Module*> below_children_ = {};
  std::set<const torch::nn::Module*> seen_ = {};
};

/// Children in order, with their names; those behind a ChildStandIn themselves.
std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>>
children_of(const torch::nn::Module& module);

/// Calls `tell(name, tensor)` for the parameters and buffers of a tree.
void each_tensor(
    const torch::nn::Module& module,
    const std::string& prefix,
    const std::function<void(const std::string&, const at::Tensor&)>& tell);

/// Gives `to`, which is built like `from`, its parameters and buffers; on
/// `to_device` if given. In place where type, sizes and device agree: members
/// of `to` may be views of them.
void copy_values(
    const torch::nn::Module& from,
    const torch::nn::Module& to,
    const std::optional<c10::Device>& to_device);

/// Calls `tell(name, ours, theirs)` for the parameters and buffers of two trees
/// that are built alike; says whether they are.
bool each_pair(
    const torch::nn::Module& from,
    const torch::nn::Module& to,
    const std::function<
        void(const std::string&, const at::Tensor&, const at::Tensor&)>& tell,
    const std::string& prefix = {});

} // namespace lockstep
