// SPDX-License-Identifier: BSD-3-Clause
//
// What is registered in one module tree: its modules, parameters and buffers,
// in PyTorch's order. Made once; whether a tree is still like that is asked in
// every forward, and answered without a copy of a name.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep::parallel {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Buffers that take gradients are listed as parameters, behind these.
struct ModuleParts {
  /// Weak: who else holds a child tells whether it was replaced
  /// (tensor/modules.h).
  std::vector<std::weak_ptr<torch::nn::Module>> modules = {};
  NamedTensors parameters = {};
  NamedTensors buffers = {};
  /// For each buffer of the tree: does it take gradients?
  std::vector<bool> flags = {};

  /// With `master`, whose structure `root` has: its flags decide, since copies
  /// of a buffer lose theirs.
  explicit ModuleParts(
      const std::shared_ptr<torch::nn::Module>& root,
      const ModuleParts* master = nullptr);

  /// What of a tree is not as it was.
  struct Changes {
    /// Its modules or parameters, or which buffers take gradients.
    bool in_structure = false;
    /// Buffers were registered since.
    bool in_buffers = false;
    /// Some module is held by its registration alone: a member was assigned
    /// (tensor/modules.h).
    bool has_lone_child = false;
    /// Which modules train, in their order, if the structure is as it was.
    std::vector<bool> modes = {};
  };
  [[nodiscard]] Changes changes() const;
  /// The name of a module or parameter that was registered since; empty without
  /// one. Looks at the modules, and how many parameters each has.
  [[nodiscard]] std::string added() const;

 private:
  NamedTensors all_buffers_ = {};
  std::size_t own_parameters_ = 0;
  /// Entries, of which some may be undefined.
  std::size_t registered_ = 0;
};

} // namespace lockstep::parallel
