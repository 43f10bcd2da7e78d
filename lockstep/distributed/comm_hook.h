// SPDX-License-Identifier: BSD-3-Clause
//
// How DistributedDataParallel brings gradients together: PyTorch's
// communication hooks. A hook gets the gradients that travel at once and gives
// back what all ranks then have.
//   model->register_comm_hook(dist::fp16_compress_hook());
//   model->register_comm_hook(
//       {.name = "mine", .run = [](const auto& group, GradBucket& bucket) {
//          return dist::all_reduce_async(
//              group, bucket.buffer().div_(group.size()));
//        }});
//
// PowerSGD, as PyTorch's powerSGD_hook: each gradient travels as two thin
// matrices, and what that loses is added to the next step's. Ranks of Python
// and C++ get the same bits from equal options.
//   auto state = std::make_shared<dist::PowerSGDState>(
//       dist::PowerSGDOptions{.matrix_approximation_rank = 2});
//   model->register_comm_hook(dist::power_sgd_hook(state));
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "lockstep/distributed/process_group.h"
#include "lockstep/tensor/state_dict.h"

#pragma GCC visibility push(default)
namespace c10d {
class GradBucket;
} // namespace c10d

namespace lockstep::dist {

/// A tensor that may still be on its way. A handle: copies name the same one.
class TensorFuture {
 public:
  /// One that is there.
  // NOLINTNEXTLINE(google-explicit-constructor): a hook may return a tensor
  TensorFuture(at::Tensor ready);
  /// Of a future of LibTorch that holds a tensor, or a list of one.
  explicit TensorFuture(c10::intrusive_ptr<c10::ivalue::Future> future);

  /// What `next` makes of the tensor when it is there.
  /// Threads: `next` runs on the backend's thread, or on this one if the tensor
  /// is there already; it may not wait for another collective.
  [[nodiscard]] TensorFuture then(
      std::function<at::Tensor(const at::Tensor& tensor)> next) const;
  /// Waits for it. Errors: throws what went wrong on the way.
  [[nodiscard]] at::Tensor wait() const;

  [[nodiscard]] const c10::intrusive_ptr<c10::ivalue::Future>& future() const {
    return future_;
  }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

/// Starts to replace `tensor` by the element-wise result over all ranks.
/// Shape: the same on all ranks, contiguous.
/// Errors: those of the collective come from the future, in c10d's words.
[[nodiscard]] TensorFuture all_reduce_async(
    const ProcessGroup& group,
    at::Tensor tensor,
    ReduceOp op = ReduceOp::kSum);

/// Gradients that travel together. Ownership: valid while the hook runs.
class GradBucket {
 public:
  explicit GradBucket(c10d::GradBucket& bucket) : bucket_(&bucket) {}

  /// The same on all ranks; 0 is on its way first.
  [[nodiscard]] std::int64_t index() const;
  /// Whether no other bucket of this backward pass comes after it.
  [[nodiscard]] bool is_last() const;
  /// All gradients, not divided by the number of ranks.
  /// Shape: [n], or that of the parameter if its gradient is sparse.
  [[nodiscard]] at::Tensor buffer() const;
  void set_buffer(at::Tensor buffer);
  /// The gradient of each of `parameters()`. Ownership: views of `buffer()`.
  [[nodiscard]] std::vector<at::Tensor> gradients() const;
  [[nodiscard]] std::vector<at::Tensor> parameters() const;

 private:
  c10d::GradBucket* bucket_;
};

/// How a model's ranks bring their gradients together.
struct CommHook {
  /// For the logging data; ranks whose hooks have different names refuse to
  /// train.
  std::string name = {};
  /// Gives back the bucket's new content, in the shape and dtype of
  /// `bucket.buffer()`. It divides by the number of ranks itself, and all ranks
  /// make the same collectives in the same order. What it throws comes out of
  /// `backward`.
  /// Threads: the one that runs backward.
  std::function<TensorFuture(const ProcessGroup& group, GradBucket& bucket)>
      run = {};
};

/// The average of the ranks: what happens without a hook, too.
CommHook allreduce_hook();
/// Half of the traffic: gradients travel as float16 (after the division, so
/// that sums do not overflow).
CommHook fp16_compress_hook();
/// The same as bfloat16, with float32's range and fewer digits.
CommHook bf16_compress_hook();

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
#pragma GCC visibility pop
