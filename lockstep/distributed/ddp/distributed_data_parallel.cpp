// SPDX-License-Identifier: BSD-3-Clause
//
// What each call does, and in which order, is wire format: Python's
// torch.nn.parallel.DistributedDataParallel of the same minor version does the
// same (torch/nn/parallel/distributed.py: _pre_forward, _post_forward).
#include "lockstep/distributed/distributed_data_parallel.h"

#include <cmath>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/autograd/autograd.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/ddp/ddp_parts.h"
#include "lockstep/distributed/ddp/ddp_state.h"
#include "lockstep/distributed/group/group_impl.h"
#include "lockstep/tensor/internal/compat.h"

namespace lockstep {
namespace {

using dist::internal::DdpParts;

void check_bucket_cap(const DistributedDataParallelOptions& options) {
  if (options.bucket_cap_mb &&
      (!std::isfinite(*options.bucket_cap_mb) || *options.bucket_cap_mb <= 0)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.ddp",
         .message = format(
             "bucket_cap_mb: expected a number above 0, got {}",
             *options.bucket_cap_mb),
         .detail = "E_CANNOT_WRAP"});
  }
}

} // namespace

DistributedDataParallelBase::DistributedDataParallelBase(
    const std::shared_ptr<torch::nn::Module>& module,
    const DistributedDataParallelOptions& options)
    : torch::nn::Module("DistributedDataParallel"),
      state_(std::make_unique<State>()) {
  check_torch_version();
  if (module == nullptr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.ddp",
         .message = "there is no module to wrap",
         .detail = "E_CANNOT_WRAP"});
  }
  check_bucket_cap(options);
  register_module("module", module);
  state_->group = dist::group_or_default(options.process_group);
  state_->options = options;
  state_->module = module;
  const DdpParts parts = dist::internal::parts_of(*module, options);
  // Asked once, as in Python: the ranks must agree on it.
  state_->syncs_buffers =
      options.forward_sync_buffers && !parts.buffers.empty();
  state_->device = parts.parameters.front().tensor.device();
  auto& group = state_->group.impl();
  if (!group.has_python_ranks) {
    dist::internal::check_equal(
        group,
        dist::internal::fingerprint(parts, options));
  }
  if (options.init_sync) {
    state_->share_parameters(parts);
  }
  state_->reduce_by(parts, dist::internal::first_buckets(parts, options));
}

DistributedDataParallelBase::~DistributedDataParallelBase() = default;

const dist::ProcessGroup& DistributedDataParallelBase::process_group() const {
  return state_->group;
}

BucketLayout DistributedDataParallelBase::bucket_layout() {
  State& state = *state_;
  // Else the next forward pass would do it.
  state.collective("rebuild_buckets", [&] {
    state.reducer->rebuild_buckets();
  });
  BucketLayout layout;
  if (!state.reducer->should_rebuild_buckets()) {
    for (const auto& bucket : state.logger->get_per_bucket_variable_indices()) {
      layout.emplace_back(bucket.begin(), bucket.end());
    }
  }
  return layout;
}

void DistributedDataParallelBase::set_bucket_layout(
    const BucketLayout& layout) {
  State& state = *state_;
  if (state.group.impl().has_python_ranks) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.ddp",
         .message = "Python ranks cannot take over the buckets of a saved run",
         .detail = "E_CANNOT_WRAP"});
  }
  const DdpParts parts = dist::internal::parts_of(*state.module, state.options);
  state.reduce_by(
      parts,
      dist::internal::saved_buckets(layout, parts.trained.size()));
  state.reducer->keep_buckets();
}

c10::Device DistributedDataParallelBase::device() const {
  return state_->device;
}

void DistributedDataParallelBase::register_comm_hook(dist::CommHook hook) {
  state_->register_hook(std::move(hook));
}

c10::DDPLoggingData DistributedDataParallelBase::get_ddp_logging_data() const {
  return state_->logger->get_ddp_logging_data();
}

void DistributedDataParallelBase::raise_wrong_type(
    const torch::nn::Module& module) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "dist.ddp",
       .message = format("the wrapped module is a {}", module.name()),
       .hint = "name its class in module<T>()",
       .detail = "E_CANNOT_WRAP"});
}

void DistributedDataParallelBase::before_forward() {
  State& state = *state_;
  const bool has_gradients = at::GradMode::is_enabled();
  const bool syncs = state.buffers_are_due && state.syncs_buffers;
  if (has_gradients) {
    state.check_first_pass();
  }
  if (has_gradients || syncs) {
    const bool knows_all = state.look_at_module();
    if (has_gradients && !knows_all) {
      state.refuse_unknown();
    }
  }
  if (has_gradients && state.averages) {
    state.compare_hooks();
    state.logger->set_runtime_stats_and_log();
    state.reducer->prepare_for_forward();
  }
  if (state.join.enable) {
    state.tell_not_joined();
  }
  if (has_gradients) {
    state.collective("rebuild_buckets", [&] {
      state.reducer->rebuild_buckets();
    });
  }
  if (syncs) {
    state.sync_buffers(
        state.join.enable ? state.common_rank(/*is_candidate=*/true) : 0);
    // Also if the pass throws: the other ranks' next one does not take them.
    state.buffers_are_due = state.averages;
  }
  if (state.join.enable) {
    static_cast<void>(state.any_averages(state.averages));
  }
}

TensorList DistributedDataParallelBase::after_forward(
    const TensorList& outputs) {
  State& state = *state_;
  const bool averages = at::GradMode::is_enabled() && state.averages;
  state.buffers_are_due = averages;
  if (averages) {
    state.reducer->prepare_for_backward(
        state.finds_unused() ? outputs : TensorList());
  }
  const bool is_first_of_static =
      state.first_backward != nullptr && !state.first_backward->has_come;
  return state.finds_unused() || is_first_of_static
             ? dist::internal::sink_outputs(outputs, state.first_backward)
             : outputs;
}

void DistributedDataParallelBase::average_gradients() {
  state_->check_own_gradients();
  // Inside `no_sync`, too.
  const bool before = std::exchange(state_->averages, true);
  const auto restore = c10::make_scope_exit([&] { state_->averages = before; });
  const at::AutoGradMode with_gradients(true);
  state_->buffers_are_due = true; // which the passes before have changed
  before_forward();
  TensorList outputs;
  TensorList zeros;
  outputs.reserve(state_->trained.size());
  zeros.reserve(state_->trained.size());
  for (const at::Tensor& parameter : state_->trained) {
    // Others are unused on this rank.
    if (parameter.requires_grad() && parameter.grad().defined()) {
      outputs.push_back(parameter.view_as(parameter));
      zeros.push_back(
          at::zeros({}, parameter.options()).expand(parameter.sizes()));
    }
  }
  torch::autograd::backward(after_forward(outputs), zeros);
  state_->buffers_are_due = false;
}

DistributedDataParallelBase::NoSync::NoSync(DistributedDataParallelBase& model)
    : model_(model), before_(std::exchange(model.state_->averages, false)) {}

DistributedDataParallelBase::NoSync::~NoSync() {
  model_.state_->averages = before_;
}

} // namespace lockstep
