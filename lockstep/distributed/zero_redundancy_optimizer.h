// SPDX-License-Identifier: BSD-3-Clause
//
// An optimizer whose state is spread over the ranks (ZeRO, stage 1): each rank
// keeps that of its part of the parameters, updates these, and gives them to
// the others. The numbers are those of the optimizer alone.
//   ZeroRedundancyOptimizer optimizer(model->parameters(), [](Params part) {
//     return std::make_unique<AdamW>(std::move(part), AdamOptions{.lr = 0.01});
//   });
// With LibTorch's, for one group: `return from_torch(
// std::make_unique<torch::optim::Adam>(part.groups().front().params, 0.01))`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "lockstep/distributed/process_group.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/torch_optimizer.h"

#pragma GCC visibility push(default)
namespace lockstep {

class TwoSidedGroups;

/// Makes an optimizer of a rank's part of the parameters, in as many groups as
/// there are in all; a group of which the rank has nothing holds an empty
/// tensor.
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(Params part)>;

/// The parts are those of Python's ZeroRedundancyOptimizer, with whose ranks
/// this one makes steps together.
/// Threads: as `Optimizer`.
class ZeroRedundancyOptimizer final : public Optimizer {
 public:
  /// All ranks of `group` (the default group if empty) give the same
  /// parameters and groups.
  /// Errors: what `make` throws; kInvalidArgument (E_ZERO_GROUPS) if it makes
  /// other groups than it is given.
  ZeroRedundancyOptimizer(
      Params params,
      const MakeOptimizer& make,
      dist::ProcessGroup group = {});
  ZeroRedundancyOptimizer(const ZeroRedundancyOptimizer&) = delete;
  ZeroRedundancyOptimizer& operator=(const ZeroRedundancyOptimizer&) = delete;
  ~ZeroRedundancyOptimizer() override;

  /// Updates this rank's part and takes over the others'. A collective.
  /// Errors: throws kInvalidArgument if an option was changed to one value here
  /// and to another in the groups of the optimizer that `make` made, or if a
  /// group was added since.
  void step() override;
  void zero_grad(bool set_to_none = true) override;

  /// Brings the state of all ranks to rank `to`, on the CPU. A collective;
  /// before each save. Errors: throws kUnsupported beside Python's ranks.
  void consolidate_state_dict(int to = 0);
  /// What `consolidate_state_dict` has brought here, as the optimizer alone
  /// would have it: Python's optimizers read it, and any number of ranks.
  /// Errors: throws kInvalidArgument in PyTorch's words on a rank to which
  /// nothing was brought.
  [[nodiscard]] ckpt::Value state_dict() const override;
  /// Takes this rank's part of a state as above. All ranks load the same.
  void load_state_dict(const ckpt::Value& state) override;

  void use_workers(Workers workers) override;
  [[nodiscard]] std::optional<std::int64_t> step_calls()
      const noexcept override {
    return own_->step_calls();
  }
  [[nodiscard]] const void* identity() const noexcept override {
    return own_->identity();
  }
  /// All parameters. Options are changed here, or in LibTorch's groups under
  /// `from_torch`.
  std::vector<ParamGroup>& param_groups() noexcept override;
  [[nodiscard]] const std::vector<ParamGroup>& param_groups()
      const noexcept override;

 private:
  /// The numbers of a rank's parameters among all, group by group.
  using Part = std::vector<std::vector<std::int64_t>>;

  void share_out();
  void take_options();
  void check_groups() const;
  [[nodiscard]] std::vector<ParamGroup> own_groups() const;
  std::vector<ParamGroup> take_changes() const;
  void set_options();
  [[nodiscard]] ParamGroup own_group(std::size_t index) const;
  [[nodiscard]] const Part& own_part() const;

  dist::ProcessGroup group_;
  std::unique_ptr<TwoSidedGroups> both_;
  /// By their numbers.
  std::vector<at::Tensor> params_ = {};
  std::vector<Part> parts_ = {};
  std::unique_ptr<Optimizer> own_;
  std::optional<ckpt::Value> consolidated_ = {};
};

} // namespace lockstep
#pragma GCC visibility pop
