// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/replica_group.h"

#include <algorithm>
#include <mutex>

#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>
#include <torch/nn/module.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/parallel/join_node.h"
#include "lockstep/parallel/random_stream.h"
#include "lockstep/parallel/replica_error.h"
#include "lockstep/parallel/worker_pool.h"

namespace lockstep {
namespace {

using namespace parallel;

constexpr const char* kOp = "parallel.group";

void check_devices(const std::vector<c10::Device>& devices) {
  if (devices.empty()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = kOp,
         .message = "the list of devices is empty",
         .hint = "write for example devices = \"cpu*2\""});
  }
  const c10::DeviceType type = devices.front().type();
  const bool is_mixed = std::ranges::any_of(devices, [&](const auto& device) {
    return device.type() != type;
  });
  if (is_mixed) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = kOp,
         .message = format(
             "replicas on {}: expected devices of one type",
             to_string(devices)),
         .hint = "write for example \"cpu*2\" or \"cuda:0,1\""});
  }
}

int intra_op_threads(const ReplicaGroupOptions& options) {
  if (options.threads_per_replica > 0) {
    return options.threads_per_replica;
  }
  const auto replicas = static_cast<int>(options.devices.size());
  return std::max(1, at::get_num_threads() / replicas);
}

} // namespace

struct ReplicaGroup::Impl {
  Call call;
  c10::Device output_device;
  std::int64_t dim = 0;
  std::mutex mutex = {};
  ReplicaSet replicas;
  // Shared with the graphs of past forwards, which may outlive the group.
  std::shared_ptr<WorkerPool> pool = {};

  Impl(
      std::shared_ptr<torch::nn::Module> module,
      Call forward_call,
      ReplicaGroupOptions options)
      : call(std::move(forward_call)),
        output_device(options.output_device.value_or(options.devices.front())),
        dim(options.dim),
        replicas(
            std::move(module),
            options.devices,
            std::move(options.factory)) {
    if (options.devices.size() == 1 && !options.devices.front().is_cpu()) {
      replicas.module(0).to(options.devices.front());
    }
    if (options.devices.size() > 1) {
      install_random_streams();
      pool = std::make_shared<WorkerPool>(
          options.devices.size(),
          intra_op_threads(options));
    }
  }

  ReplicaPass
  run_replica(std::size_t index, const TensorList& shards, bool grad);
};

ReplicaGroup::ReplicaGroup(
    std::shared_ptr<torch::nn::Module> module,
    Call call,
    ReplicaGroupOptions options) {
  check_devices(options.devices);
  impl_ = std::make_unique<Impl>(
      std::move(module),
      std::move(call),
      std::move(options));
}

ReplicaGroup::~ReplicaGroup() = default;

std::span<const c10::Device> ReplicaGroup::devices() const {
  return impl_->replicas.devices();
}

torch::nn::Module& ReplicaGroup::replica(std::size_t index) const {
  return impl_->replicas.module(index);
}

Workers ReplicaGroup::workers() const {
  const std::shared_ptr<WorkerPool> pool = impl_->pool;
  if (pool == nullptr) {
    return {};
  }
  return {
      .count = pool->size(),
      .run = [pool](std::size_t tasks, const Workers::Task& task) {
        for (const auto& error : pool->run(tasks, task)) {
          if (error != nullptr) {
            std::rethrow_exception(error);
          }
        }
      }};
}

void ReplicaGroup::rebuild() {
  const std::lock_guard lock(impl_->mutex);
  impl_->replicas.rebuild();
}

// Runs in the replica's own thread, under the caller's state.
ReplicaPass ReplicaGroup::Impl::run_replica(
    std::size_t index,
    const TensorList& shards,
    bool grad) {
  ReplicaPass pass;
  for (const at::Tensor& shard : shards) {
    // A leaf of the replica's own graph: its gradient is picked up there.
    at::Tensor input = shard.detach();
    if (grad && shard.requires_grad()) {
      input.set_requires_grad(true);
    }
    pass.inputs.push_back(std::move(input));
  }
  const auto before = replicas.fingerprint(index);
  const c10::DeviceGuard device(replicas.devices()[index]);
  pass.outputs = call(replicas.module(index), pass.inputs);
  replicas.check_unchanged(index, before);
  return pass;
}

TensorList ReplicaGroup::forward(const TensorList& inputs) {
  Impl& self = *impl_;
  const auto& devices = self.replicas.devices();
  if (self.pool == nullptr) {
    if (devices.front().is_cpu()) {
      return self.call(self.replicas.module(0), inputs);
    }
    const c10::DeviceGuard device(devices.front());
    const auto shards = scatter(inputs, devices, self.dim);
    return self.call(self.replicas.module(0), shards.front());
  }
  const std::lock_guard lock(self.mutex);
  const std::vector<TensorList> shards = scatter(inputs, devices, self.dim);
  self.replicas.follow(shards.size());
  const bool grad = at::GradMode::is_enabled();
  JoinPlan plan{
      .pool = self.pool,
      .devices = devices,
      .output_device = self.output_device,
      .dim = self.dim,
      .inputs = inputs};
  plan.passes.resize(shards.size());
  PassStreams streams;
  const auto errors = self.pool->run(shards.size(), [&](std::size_t i) {
    const StreamGuard stream(streams, i);
    plan.passes[i] = self.run_replica(i, shards[i], grad);
  });
  rethrow_lowest(errors, devices, "parallel.forward");
  for (std::size_t i = 1; i < shards.size(); ++i) {
    if (plan.passes[i].outputs.size() != plan.passes[0].outputs.size()) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = "parallel.gather",
           .message = format(
               "replica {} returned {} tensors, replica 0 returned {}",
               i,
               plan.passes[i].outputs.size(),
               plan.passes[0].outputs.size())});
    }
  }
  return join(std::move(plan), self.replicas.parameters());
}

} // namespace lockstep
