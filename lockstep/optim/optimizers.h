// SPDX-License-Identifier: BSD-3-Clause
//
// SGD, Adam and AdamW with PyTorch's bits.
//   SGD optimizer(*net, {.lr = 0.01, .momentum = 0.9, .weight_decay = 5e-4});
//   AdamW optimizer(*net, {.lr = 1e-3, .weight_decay = 0.05});
//
// Optimizers and schedulers by the names that the command line uses.
//   auto optimizer = make_optimizer("sgd", *net, {.lr = 0.1});
//   auto scheduler = make_scheduler("steplr", *optimizer, {.step_size = 30});
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/scheduler.h"

#pragma GCC visibility push(default)
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

/// Options of all optimizers; each takes those it has.
struct OptimizerOptions {
  double lr = 1e-3;
  /// SGD only.
  double momentum = 0;
  double dampening = 0;
  /// None: the optimizer's own default.
  std::optional<double> weight_decay = {};
  bool nesterov = false;
  /// Adam and AdamW only.
  Betas betas = {};
  double eps = 1e-8;
  bool amsgrad = false;
  bool maximize = false;
  std::optional<bool> fused = {};
};

/// "sgd", "adam", "adamw".
std::vector<std::string> optimizer_names();
/// Upper and lower case do not matter. Errors: throws kInvalidArgument for an
/// unknown name (with the nearest one) or a bad option.
std::unique_ptr<Optimizer> make_optimizer(
    std::string_view name,
    Params params,
    const OptimizerOptions& options = {});

/// Python's class of the optimizer that saved `state`, by the options of its
/// groups: "AdamW", "RMSprop"; empty if they are nobody's.
std::string saved_optimizer(const ckpt::Value& state);

/// Options of all schedulers; each takes those it has.
struct SchedulerOptions {
  /// steplr: epochs between decays.
  std::int64_t step_size = 30;
  /// multisteplr: epochs of decay.
  std::vector<std::int64_t> milestones = {};
  /// steplr, multisteplr, exponentiallr.
  double gamma = 0.1;
  /// cosineannealinglr: epochs; onecyclelr: batches.
  std::int64_t total_steps = 0;
  /// cosineannealinglr, cosineannealingwarmrestarts; reducelronplateau's
  /// min_lr.
  double eta_min = 0;
  /// reducelronplateau, whose factor is `gamma`: "min" or "max", and epochs.
  std::string mode = "min";
  std::int64_t patience = 10;
  /// onecyclelr, cycliclr; none: the groups' own, for cycliclr the first one's.
  std::optional<double> max_lr = {};
  /// onecyclelr.
  double pct_start = 0.3;
  /// linearlr, polynomiallr: epochs.
  std::int64_t total_iters = 5;
  /// linearlr.
  double start_factor = 1.0 / 3;
  double end_factor = 1.0;
  /// polynomiallr.
  double power = 1.0;
  /// cosineannealingwarmrestarts: epochs until the first restart, and how many
  /// times as many until each next one.
  std::int64_t t_0 = 0;
  std::int64_t t_mult = 1;
  /// cycliclr: lowest rate, which it must be given, and batches up (and down).
  std::optional<double> base_lr = {};
  std::int64_t step_size_up = 2000;
};

/// "constant" and Python's classes in lower case: "steplr", "multisteplr",
/// "linearlr", "exponentiallr", "polynomiallr", "cosineannealinglr",
/// "cosineannealingwarmrestarts", "cycliclr", "onecyclelr",
/// "reducelronplateau", which steps with a metric. The command line has some of
/// them.
std::vector<std::string> scheduler_names();
/// Upper and lower case do not matter. "constant" is Python's ConstantLR with
/// factor 1. Ownership: as `OptimizerRef` says.
/// Errors: as `make_optimizer`.
std::unique_ptr<Scheduler> make_scheduler(
    std::string_view name,
    const OptimizerRef& optimizer,
    const SchedulerOptions& options = {});

/// The name of the scheduler that saved `state`: the command line's, or
/// Python's class, "ExponentialLR"; empty if its keys are nobody's. A state of
/// MultiplicativeLR looks like one of LambdaLR, which is the answer.
std::string saved_scheduler(const ckpt::Value& state);

} // namespace lockstep
#pragma GCC visibility pop
