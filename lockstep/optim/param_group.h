// SPDX-License-Identifier: BSD-3-Clause
//
// Parameters to optimise, in groups that have options of their own. Options
// keep PyTorch's names and order, so a group is saved as Python saves it.
//   Params params = {{.params = backbone, .options = {{"lr", 0.001}}},
//                    {.params = head}};
//   for (ParamGroup& group : optimizer.param_groups()) {
//     group.set_lr(group.lr() / 2);
//   }
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/ckpt/value.h"

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// Name and value of one option: {"lr", 0.1}.
using NamedOption = std::pair<std::string, ckpt::Value>;

/// One group of parameters. What `options` leaves out comes from the options
/// of the optimizer; schedulers add `initial_lr` and more.
struct ParamGroup {
  /// Ownership: shared with the module.
  std::vector<at::Tensor> params = {};
  /// In Python's order, without "params". Names of parameters, if any, are the
  /// list "param_names".
  std::vector<NamedOption> options = {};

  /// The option's value; null if there is none.
  [[nodiscard]] const ckpt::Value* find(std::string_view name) const noexcept;
  /// True if the option is there, with a value of the same text.
  [[nodiscard]] bool has(std::string_view name, const ckpt::Value& value) const;
  /// The option as a number; a tensor of one element is one. Errors: throws
  /// kInvalidArgument if it is none.
  [[nodiscard]] double number(std::string_view name) const;
  /// The option as a bool; None and a missing option are false. Errors: throws
  /// kInvalidArgument for other types.
  [[nodiscard]] bool flag(std::string_view name) const;
  /// Adam's pair of decay rates. Errors: throws kInvalidArgument.
  [[nodiscard]] std::pair<double, double> betas() const;
  /// Replaces the option, or appends it.
  void set(std::string_view name, ckpt::Value value);

  [[nodiscard]] double lr() const {
    return number("lr");
  }
  void set_lr(double lr) {
    set("lr", lr);
  }
};

/// What an optimizer works on: a module, tensors, or groups. Shared parameters
/// of a module count once, as in Python.
class Params {
 public:
  // Implicit on purpose: `SGD optimizer(*net, {.lr = 0.1})`.
  // NOLINTBEGIN(google-explicit-constructor)
  Params(const torch::nn::Module& module);
  Params(std::vector<at::Tensor> tensors);
  Params(std::vector<ParamGroup> groups);
  Params(ParamGroup group);
  // NOLINTEND(google-explicit-constructor)
  Params(std::initializer_list<at::Tensor> tensors);
  Params(std::initializer_list<ParamGroup> groups);

  [[nodiscard]] const std::vector<ParamGroup>& groups() const& noexcept {
    return groups_;
  }
  [[nodiscard]] std::vector<ParamGroup> groups() && noexcept {
    return std::move(groups_);
  }

 private:
  std::vector<ParamGroup> groups_;
};

/// All parameters with their names, as Python's `model.named_parameters()`:
/// the optimizer's state then carries `param_names`.
ParamGroup named_parameters(const torch::nn::Module& module);

/// The parameters that require gradients, as Python's
/// `filter(lambda p: p.requires_grad, model.parameters())`.
std::vector<at::Tensor> trainable_parameters(const torch::nn::Module& module);

} // namespace lockstep
