// SPDX-License-Identifier: BSD-3-Clause
//
// Stochastic gradient descent with PyTorch's bits.
//   SGD optimizer(*net, {.lr = 0.01, .momentum = 0.9, .weight_decay = 5e-4});
#pragma once

#include <memory>
#include <optional>

#include "lockstep/optim/optimizer.h"

namespace lockstep {

/// Options of SGD; a parameter group may replace any of them by name.
struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  /// Share of the gradient that the momentum leaves out.
  double dampening = 0;
  /// L2 penalty.
  double weight_decay = 0;
  /// Needs a momentum and no dampening.
  bool nesterov = false;
  /// Climb instead of descend.
  bool maximize = false;
  /// True: one pass over memory, the bits of Python's `fused=True`. Otherwise
  /// the bits of Python's default on a CPU; none is saved as None.
  std::optional<bool> fused = {};
};

/// Python's `torch.optim.SGD`.
class SGD final : public OptimizerBase {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text.
  explicit SGD(Params params, const SGDOptions& options = {});
  void step() override;

 private:
  struct Settings;
  static void step_single(internal::Part& part, const Settings& settings);
  static void step_fused(internal::Part& part, const Settings& settings);
};

} // namespace lockstep
