// SPDX-License-Identifier: BSD-3-Clause
//
// Some Python programs wrap the optimizer as well and call
// `optimizer.module.step()`. It is not needed: parameters live once, in the
// wrapped module, so a plain optimizer steps all replicas. In PyTorch the
// wrapper loses the optimizer's state dictionary; here it is passed through.
//   DataParallelOptimizer optimizer(sgd);
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "lockstep/optim/torch_optimizer.h"

namespace lockstep {

/// A shared optimizer behind the name `module()`: ours, or one of
/// torch::optim's SGD, Adam, AdamW, RMSprop and Adagrad.
template <class Optimizer>
class DataParallelOptimizer {
 public:
  explicit DataParallelOptimizer(std::shared_ptr<Optimizer> optimizer)
      : optimizer_(std::move(optimizer)) {}

  /// The optimizer itself: step, zero_grad, param_groups.
  [[nodiscard]] const std::shared_ptr<Optimizer>& module() const noexcept {
    return optimizer_;
  }
  /// `optimizer->module()`, as in `optimizer.module` of such a program.
  const DataParallelOptimizer* operator->() const noexcept {
    return this;
  }

  /// The inner optimizer's state.
  [[nodiscard]] auto state_dict() const {
    if constexpr (kIsTorchs) {
      return lockstep::state_dict(*optimizer_);
    } else {
      return optimizer_->state_dict();
    }
  }
  /// Loads the inner optimizer's state.
  template <class State>
  void load_state_dict(const State& state) const {
    if constexpr (kIsTorchs) {
      static_cast<void>(lockstep::load_state_dict(*optimizer_, state));
    } else {
      optimizer_->load_state_dict(state);
    }
  }

 private:
  static constexpr bool kIsTorchs =
      std::is_base_of_v<torch::optim::Optimizer, Optimizer>;

  std::shared_ptr<Optimizer> optimizer_;
};

} // namespace lockstep
