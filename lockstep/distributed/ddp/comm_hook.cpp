// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/comm_hook.h"

#include <utility>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/ddp/hook_adapter.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::dist {
namespace {

using c10::ivalue::Future;

c10::intrusive_ptr<Future> ready_future(at::Tensor tensor) {
  auto future = c10::make_intrusive<Future>(c10::TensorType::get());
  future->markCompleted(std::move(tensor));
  return future;
}

std::string shape_text(const at::Tensor& tensor) {
  return tensor.defined() ? format(
                                "{} {}",
                                c10::toString(tensor.scalar_type()),
                                tuple_text(tensor.sizes()))
                          : "nothing";
}

/// The Reducer would read such a result beyond its end.
void check_result(
    const std::string& name,
    const at::Tensor& result,
    const at::Tensor& bucket) {
  if (result.defined() && result.sizes() == bucket.sizes() &&
      result.scalar_type() == bucket.scalar_type()) {
    return;
  }
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "dist.ddp",
       .message = format(
           "communication hook '{}' gave {}, expected {}",
           escape(name),
           shape_text(result),
           shape_text(bucket)),
       .hint = "the result has the shape and dtype of the bucket's buffer",
       .detail = "E_COMM_HOOK"});
}

class Adapter final : public c10d::CommHookInterface {
 public:
  Adapter(CommHook hook, ProcessGroup group)
      : hook_(std::move(hook)), group_(std::move(group)) {}

  c10::intrusive_ptr<Future> runHook(c10d::GradBucket& bucket) override {
    const at::Tensor expected = bucket.getBuffer();
    GradBucket view(bucket);
    return hook_.run(group_, view)
        .then([name = hook_.name, expected](const at::Tensor& result) {
          check_result(name, result, expected);
          return result;
        })
        .future();
  }

  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  CommHook hook_;
  ProcessGroup group_;
};

/// Travels as `dtype`.
CommHook compressing(std::string name, at::ScalarType dtype) {
  return {
      .name = std::move(name),
      .run = [dtype](const ProcessGroup& group, GradBucket& bucket) {
        const at::Tensor buffer = bucket.buffer();
        const at::Tensor small = buffer.to(dtype).div_(group.size());
        return all_reduce_async(group, small)
            .then(
                [buffer](const at::Tensor& sum) { return buffer.copy_(sum); });
      }};
}

} // namespace

TensorFuture::TensorFuture(at::Tensor ready)
    : future_(ready_future(std::move(ready))) {}

TensorFuture::TensorFuture(c10::intrusive_ptr<Future> future)
    : future_(std::move(future)) {
  if (future_ == nullptr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.ddp",
         .message = "there is no future",
         .detail = "E_COMM_HOOK"});
  }
}

TensorFuture TensorFuture::then(
    std::function<at::Tensor(const at::Tensor& tensor)> next) const {
  return TensorFuture(future_->then(
      [next = std::move(next)](Future& done) -> c10::IValue {
        return next(c10d::detail::parseCppCommHookResult(done.value()));
      },
      c10::TensorType::get()));
}

at::Tensor TensorFuture::wait() const {
  future_->waitAndThrow();
  return c10d::detail::parseCppCommHookResult(future_->value());
}

TensorFuture
all_reduce_async(const ProcessGroup& group, at::Tensor tensor, ReduceOp op) {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  c10d::AllreduceOptions options;
  options.reduceOp = internal::to_c10d(op);
  return TensorFuture(
      group.impl().group->allreduce(tensors, options)->getFuture());
}

std::int64_t GradBucket::index() const {
  return static_cast<std::int64_t>(bucket_->getIndex());
}

bool GradBucket::is_last() const {
  return bucket_->isLast();
}

at::Tensor GradBucket::buffer() const {
  return bucket_->getBuffer();
}

void GradBucket::set_buffer(at::Tensor buffer) {
  bucket_->setBuffer(buffer);
}

std::vector<at::Tensor> GradBucket::gradients() const {
  return bucket_->getGradients();
}

std::vector<at::Tensor> GradBucket::parameters() const {
  return bucket_->getParameters();
}

CommHook allreduce_hook() {
  return {
      .name = "allreduce_hook",
      .run = [](const ProcessGroup& group, GradBucket& bucket) {
        return all_reduce_async(group, bucket.buffer().div_(group.size()));
      }};
}

CommHook fp16_compress_hook() {
  return compressing("fp16_compress_hook", at::kHalf);
}

CommHook bf16_compress_hook() {
  return compressing("bf16_compress_hook", at::kBFloat16);
}

namespace internal {

std::unique_ptr<c10d::CommHookInterface> adapt(
    CommHook hook,
    ProcessGroup group) {
  return std::make_unique<Adapter>(std::move(hook), std::move(group));
}

} // namespace internal
} // namespace lockstep::dist
