// SPDX-License-Identifier: BSD-3-Clause
//
// Adam and AdamW with PyTorch's bits.
//   AdamW optimizer(*net, {.lr = 1e-3, .weight_decay = 0.05});
#pragma once

#include <memory>
#include <optional>

#include "lockstep/optim/optimizer.h"

namespace lockstep {

/// Decay rates of Adam's two running averages.
struct Betas {
  double first = 0.9;
  double second = 0.999;
};

/// Options of Adam; a parameter group may replace any of them by name.
struct AdamOptions {
  double lr = 1e-3;
  Betas betas = {};
  double eps = 1e-8;
  /// Added to the gradient (Adam) or taken from the parameter (AdamW); none:
  /// 0 for Adam, 0.01 for AdamW.
  std::optional<double> weight_decay = {};
  /// Divide by the largest second average so far.
  bool amsgrad = false;
  /// Climb instead of descend.
  bool maximize = false;
  /// True: one pass over memory, the bits of Python's `fused=True`. Otherwise
  /// the bits of Python's default on a CPU; none is saved as None.
  std::optional<bool> fused = {};
};

/// Python's `torch.optim.Adam`.
class Adam : public OptimizerBase {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text.
  explicit Adam(Params params, const AdamOptions& options = {});
  void step() override;

 protected:
  Adam(
      const OptimizerKind& kind,
      Params params,
      const AdamOptions& options,
      bool is_decoupled);

 private:
  struct Settings;
  /// The state, made on first use.
  static ParamState& ready_state(
      const internal::Update& update,
      const Settings& settings);
  static void step_single(
      const internal::Update& update,
      internal::Scratch& scratch,
      const Settings& settings);
  static void step_fused(internal::Part& part, const Settings& settings);
};

/// Python's `torch.optim.AdamW`: decay apart from the gradient.
class AdamW final : public Adam {
 public:
  /// Errors: throws kInvalidArgument with PyTorch's text.
  explicit AdamW(Params params, const AdamOptions& options = {});
};

} // namespace lockstep
