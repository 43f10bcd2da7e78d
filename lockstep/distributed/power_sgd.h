// SPDX-License-Identifier: BSD-3-Clause
//
// PowerSGD, as PyTorch's powerSGD_hook: each gradient travels as two thin
// matrices, and what that loses is added to the next step's. Ranks of Python
// and C++ get the same bits from equal options.
//   auto state = std::make_shared<dist::PowerSGDState>(
//       dist::PowerSGDOptions{.matrix_approximation_rank = 2});
//   model->register_comm_hook(dist::power_sgd_hook(state));
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>

#include <ATen/core/Tensor.h>

#include "lockstep/distributed/comm_hook.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::dist {

/// The arguments of Python's PowerSGDState, with its defaults. All ranks give
/// the same.
struct PowerSGDOptions {
  /// Columns of the thin matrices: more is nearer to the gradient and costs
  /// more.
  std::int64_t matrix_approximation_rank = 1;
  /// Steps at the beginning whose gradients travel whole.
  std::int64_t start_power_sgd_iter = 1000;
  /// A gradient travels whole if it would not shrink by this factor.
  double min_compression_rate = 2;
  /// Add to the next gradient what was lost of this one.
  bool use_error_feedback = true;
  /// Begin each step with the matrices of the step before.
  bool warm_start = true;
  /// Added to the length of a column: above 0 for gradients that may be all 0.
  double orthogonalization_epsilon = 0;
  std::uint32_t random_seed = 0;
  /// Compress gradients of equal shape in one operation.
  bool batch_tensors_with_same_shape = false;
};

/// What PowerSGD remembers between steps. One for each model.
/// Threads: used by the one that runs backward.
class PowerSGDState {
 public:
  /// Errors: throws kInvalidArgument for options that Python refuses, in its
  /// words, and for a rank below 1.
  explicit PowerSGDState(const PowerSGDOptions& options = {});

  [[nodiscard]] const PowerSGDOptions& options() const {
    return options_;
  }
  /// Steps so far.
  [[nodiscard]] std::int64_t iter() const {
    return iter_;
  }
  /// Units: elements of all gradients so far, and of what travelled instead.
  struct Counts {
    std::int64_t before = 0;
    std::int64_t after = 0;
  };
  [[nodiscard]] const Counts& compression_stats() const {
    return counts_;
  }

  /// What a run needs to go on as if it had not stopped: "iter", "draws" (of
  /// random numbers), and "error.0", "p.0", "q.0" for bucket 0, and so on. Each
  /// rank has its own errors, so each saves its own.
  /// Ownership: copies.
  [[nodiscard]] StateDict state_dict() const;
  /// Errors: throws kMismatch, and changes nothing, if `state` is not one of
  /// these.
  void load_state_dict(const StateDict& state);

  /// The bucket's content, averaged over `group`.
  at::Tensor average(const ProcessGroup& group, GradBucket& bucket);

 private:
  struct Plan;

  at::Tensor whole_average(const ProcessGroup& group, GradBucket& bucket);
  Plan plan(const GradBucket& bucket);
  void take_memory(Plan& plan, std::int64_t bucket);
  void fill_qs(Plan& plan);
  void compress(const ProcessGroup& group, Plan& plan, std::int64_t bucket);
  std::uint32_t next_seed();
  void count_step(const GradBucket& bucket);

  PowerSGDOptions options_;
  std::int64_t iter_ = 0;
  Counts counts_ = {};
  /// NumPy's generator with the same numbers.
  std::mt19937 random_;
  std::int64_t draws_ = 0;
  /// By bucket.
  std::map<std::int64_t, at::Tensor> errors_ = {};
  std::map<std::int64_t, at::Tensor> p_memory_ = {};
  std::map<std::int64_t, at::Tensor> q_memory_ = {};
};

/// A hook that uses `state`. Its collectives run one after the other, so that
/// any number of buckets keeps its order on all ranks; beside Python's ranks
/// there may be only one bucket, and no `find_unused_parameters`.
CommHook power_sgd_hook(std::shared_ptr<PowerSGDState> state);

} // namespace lockstep::dist
