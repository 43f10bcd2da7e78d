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
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "lockstep/distributed/process_group.h"

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

} // namespace lockstep::dist
