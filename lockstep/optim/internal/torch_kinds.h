// SPDX-License-Identifier: BSD-3-Clause
//
// How each of LibTorch's optimizers keeps what Python keeps in dicts.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lockstep/optim/internal/two_sided_groups.h"
#include "lockstep/optim/optimizer.h"

namespace torch::optim {
class Optimizer;
class OptimizerOptions;
class OptimizerParamState;
} // namespace torch::optim

namespace lockstep::internal {

using Memory = std::shared_ptr<TwoSidedGroups>;

/// One class of optimizers.
struct TorchKind {
  /// Python's rules, and before them: no option that LibTorch would not follow.
  OptimizerKind rules = {};
  bool (*is_kind_of)(const torch::optim::Optimizer& optimizer) = nullptr;
  /// Python's full list; what LibTorch lacks has Python's default.
  std::vector<NamedOption> (*options)(
      const torch::optim::OptimizerOptions& options) = nullptr;
  /// Takes from `group` what LibTorch has.
  void (*set_options)(
      torch::optim::OptimizerOptions& options,
      const ParamGroup& group) = nullptr;
  /// Adds the tensors under Python's keys; undefined ones are left out.
  void (*read_state)(
      const torch::optim::OptimizerParamState& state,
      ParamState& entry) = nullptr;
  /// Errors: throws kMismatch for a `step` that is no count.
  std::unique_ptr<torch::optim::OptimizerParamState> (*make_state)(
      ParamState& entry) = nullptr;
  /// State that must exist before the first step; null where `step` makes it.
  std::unique_ptr<torch::optim::OptimizerParamState> (*first_state)(
      const torch::optim::Optimizer& optimizer,
      const at::Tensor& param) = nullptr;
  /// What torch_memory.h keeps in these options; null if nothing.
  Memory (*memory)(const torch::optim::OptimizerOptions& options) = nullptr;
  /// Equal options that keep it; null for options of a derived class.
  std::unique_ptr<torch::optim::OptimizerOptions> (*remembering)(
      const torch::optim::OptimizerOptions& options,
      Memory memory) = nullptr;
};

/// Errors: throws kUnsupported for a class that is in no row; `op` is the
/// operation that asks.
const TorchKind& torch_kind(
    const torch::optim::Optimizer& optimizer,
    std::string_view op);

} // namespace lockstep::internal
