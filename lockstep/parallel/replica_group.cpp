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
#include "lockstep/device/internal/streams.h"
#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/internal/pass.h"
#include "lockstep/parallel/internal/random_stream.h"
#include "lockstep/tensor/internal/compat.h"

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
         .hint = R"(write for example "cpu*2" or "cuda:0,1")"});
  }
}

c10::Device one_device(const DeviceSpec& spec) {
  const auto devices = spec.resolve();
  if (devices.size() != 1) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "parallel.wrap",
         .message = format(
             "output_device: expected one device, got \"{}\"",
             to_string(devices))});
  }
  return devices.front();
}

int intra_op_threads(int threads_per_replica, std::size_t replicas) {
  if (threads_per_replica < 0) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = kOp,
         .message = format(
             "threads_per_replica is {}, expected 1 or more, or 0 for the "
             "process's threads divided by the replicas",
             threads_per_replica)});
  }
  if (threads_per_replica > 0) {
    return threads_per_replica;
  }
  return std::max(1, at::get_num_threads() / static_cast<int>(replicas));
}

std::shared_ptr<PassContext> make_context(
    std::vector<c10::Device> devices,
    const DataParallelOptions& options) {
  auto context = std::make_shared<PassContext>(std::move(devices));
  context->dim = options.dim;
  if (!options.output_device.is_empty()) {
    context->output_device = one_device(options.output_device);
  }
  const std::size_t replicas = context->devices.size();
  if (replicas > 1) {
    install_random_streams();
    context->pool = std::make_unique<WorkerPool>(
        replicas,
        intra_op_threads(options.threads_per_replica, replicas));
    if (options.nccl) {
      context->nccl = std::make_unique<NcclReduce>(context->devices);
    }
  }
  return context;
}

} // namespace

struct ReplicaGroup::Impl : PassParts {
  bool is_output_named = false;
  std::mutex mutex = {};

  Impl(PassParts parts, bool names_output)
      : PassParts(std::move(parts)), is_output_named(names_output) {}

  TensorList forward_on_one(const TensorList& inputs, const Call& call);
};

ReplicaGroup::ReplicaGroup(
    std::shared_ptr<torch::nn::Module> module,
    std::vector<c10::Device> devices,
    const DataParallelOptions& options,
    ModuleFactory default_factory) {
  check_torch_version();
  check_devices(devices);
  ReplicaSet replicas(
      std::move(module),
      devices,
      options,
      std::move(default_factory));
  const bool is_alone = devices.size() == 1;
  const bool is_on_cpu = devices.front().is_cpu();
  if (is_alone && !is_on_cpu) {
    replicas.module(0).to(devices.front());
  }
  auto streams = copy_streams(devices);
  auto context = make_context(std::move(devices), options);
  placement_ = {.is_direct = is_alone && is_on_cpu, .is_alone = is_alone};
  is_plain_ = placement_.is_direct && context->output_device.is_cpu();
  impl_ = std::make_unique<Impl>(
      PassParts{
          .context = std::move(context),
          .replicas = std::move(replicas),
          .copy_streams = std::move(streams),
          .is_connected = options.connected_graph},
      !options.output_device.is_empty());
}

ReplicaGroup::~ReplicaGroup() = default;

std::span<const c10::Device> ReplicaGroup::devices() const {
  return impl_->context->devices;
}

torch::nn::Module& ReplicaGroup::replica(std::size_t index) const {
  return impl_->replicas.module(index);
}

std::unique_ptr<IntraOpThreadsGuard> ReplicaGroup::share_threads() const {
  const WorkerPool* const pool = impl_->context->pool.get();
  if (pool == nullptr || !devices().front().is_cpu() ||
      !IntraOpThreadsGuard::is_available()) {
    return nullptr;
  }
  return std::make_unique<IntraOpThreadsGuard>(pool->intra_op_threads());
}

Workers ReplicaGroup::workers() const {
  if (impl_->context->pool == nullptr) {
    return {};
  }
  return {
      .count = impl_->context->pool->size(),
      .run = [context = impl_->context](
                 std::size_t tasks,
                 const Workers::Task& task) {
        for (const auto& error : context->pool->run(tasks, task)) {
          if (error != nullptr) {
            std::rethrow_exception(error);
          }
        }
      }};
}

Traffic& ReplicaGroup::traffic() const {
  return impl_->context->traffic;
}

void ReplicaGroup::rebuild() {
  if (impl_->context->pool != nullptr) {
    impl_->context->pool->check_outside();
  }
  const std::lock_guard lock(impl_->mutex);
  impl_->replicas.rebuild();
}

void ReplicaGroup::forget_sent() {
  if (impl_->context->pool != nullptr) {
    impl_->context->pool->check_outside();
  }
  const std::lock_guard lock(impl_->mutex);
  impl_->replicas.forget_sent();
}

TensorList ReplicaGroup::Impl::forward_on_one(
    const TensorList& inputs,
    const Call& call) {
  TensorList outputs = [&] {
    const c10::Device device = context->devices.front();
    if (device.is_cpu()) {
      return call(0, replicas.module(0), inputs).tensors;
    }
    {
      const std::lock_guard lock(mutex);
      replicas.follow(1, context->traffic); // PyTorch, too, looks where it is
    }
    const c10::DeviceGuard guard(device);
    const auto shards =
        scatter(inputs, context->devices, context->dim, copy_streams);
    return call(0, replicas.module(0), shards.front()).tensors;
  }();
  for (at::Tensor& output : outputs) {
    if (is_output_named && output.defined() &&
        output.device() != context->output_device) {
      context->traffic.add(
          Cargo::kOutputs,
          0,
          {.copies = 1, .bytes = bytes_of(output)});
      output = output.to(context->output_device);
    }
  }
  return outputs;
}

TensorList ReplicaGroup::forward(const TensorList& inputs, const Call& call) {
  if (impl_->context->pool == nullptr) {
    return impl_->forward_on_one(inputs, call);
  }
  impl_->context->pool->check_outside();
  const std::lock_guard lock(impl_->mutex);
  Pass pass(*impl_, inputs, call);
  pass.split();
  pass.follow();
  pass.run();
  pass.gate();
  return pass.join();
}

} // namespace lockstep
