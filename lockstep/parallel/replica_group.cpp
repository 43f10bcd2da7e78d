// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/replica_group.h"

#include <algorithm>
#include <mutex>

#include <ATen/Parallel.h>
#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/streams.h"
#include "lockstep/parallel/changed_inputs.h"
#include "lockstep/parallel/gradient_gates.h"
#include "lockstep/parallel/join_node.h"
#include "lockstep/parallel/random_stream.h"
#include "lockstep/parallel/replica_error.h"
#include "lockstep/parallel/turns.h"
#include "lockstep/parallel/worker_pool.h"
#include "lockstep/tensor/compat.h"

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

// The shards that went to other devices and the outputs that come back.
void count_batch(const JoinPlan& plan) {
  for (std::size_t r = 0; r < plan.passes.size(); ++r) {
    const auto count = [&](Cargo cargo, const at::Tensor& part, bool is_moved) {
      if (part.defined() && is_moved) {
        plan.traffic->add(cargo, r, {.copies = 1, .bytes = bytes_of(part)});
      }
    };
    const ReplicaPass& pass = plan.passes[r];
    for (std::size_t i = 0; i < pass.inputs.size(); ++i) {
      const at::Tensor& whole = plan.inputs[i];
      count(
          Cargo::kInputs,
          pass.inputs[i],
          whole.defined() && whole.device() != plan.devices[r]);
    }
    for (std::size_t k = 0; k < pass.returned; ++k) {
      const at::Tensor& output = pass.outputs[k];
      count(
          Cargo::kOutputs,
          output,
          output.defined() && output.device() != plan.output_device);
    }
  }
}

// The shards as inputs of a replica's own graph. With gradients off, too:
// forward may turn them on.
void begin_graph(
    ReplicaPass& pass,
    const TensorList& shards,
    const TensorList& inputs) {
  const bool can_have_graph = !c10::InferenceMode::is_enabled();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const at::Tensor& shard = shards[i];
    if (!shard.defined()) {
      pass.inputs.emplace_back();
      pass.input_edges.emplace_back();
      continue;
    }
    const bool takes_gradient = can_have_graph && inputs[i].requires_grad();
    pass.inputs.push_back(
        takes_gradient ? gated_input(shard) : shard.variable_data());
    pass.input_edges.push_back(
        takes_gradient
            ? torch::autograd::impl::gradient_edge(pass.inputs.back())
            : torch::autograd::Edge());
  }
}

int intra_op_threads(const ReplicaGroupOptions& options) {
  if (options.threads_per_replica < 0) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = kOp,
         .message = format(
             "threads_per_replica is {}, expected 1 or more, or 0 for the "
             "process's threads divided by the replicas",
             options.threads_per_replica)});
  }
  if (options.threads_per_replica > 0) {
    return options.threads_per_replica;
  }
  const auto replicas = static_cast<int>(options.devices.size());
  return std::max(1, at::get_num_threads() / replicas);
}

} // namespace

struct ReplicaGroup::Impl {
  c10::Device output_device;
  bool is_output_named = false;
  std::int64_t dim = 0;
  bool is_connected = false;
  std::mutex mutex = {};
  ReplicaSet replicas;
  // For batches on their way from the host.
  std::vector<c10::Stream> streams;
  // Shared with the graphs of past forwards, which may outlive the group.
  std::shared_ptr<WorkerPool> pool = {};
  std::shared_ptr<Traffic> traffic;
  std::shared_ptr<NcclReduce> nccl = {};
  StrangerCheck check_strangers = {};

  Impl(std::shared_ptr<torch::nn::Module> module, ReplicaGroupOptions options)
      : output_device(options.output_device.value_or(options.devices.front())),
        is_output_named(options.output_device.has_value()),
        dim(options.dim),
        is_connected(options.connected_graph),
        replicas(
            std::move(module),
            options.devices,
            {.factory = std::move(options.factory),
             .default_factory = std::move(options.default_factory),
             .is_connected = options.connected_graph,
             .trusts_versions = options.trust_versions}),
        streams(copy_streams(options.devices)),
        traffic(std::make_shared<Traffic>(options.devices.size())) {
    if (options.devices.size() == 1 && !options.devices.front().is_cpu()) {
      replicas.module(0).to(options.devices.front());
    }
    if (options.devices.size() > 1) {
      install_random_streams();
      pool = std::make_shared<WorkerPool>(
          options.devices.size(),
          intra_op_threads(options));
    }
    if (options.nccl && options.devices.size() > 1) {
      nccl = std::make_shared<NcclReduce>(options.devices);
    }
  }

  ReplicaPass run_replica(
      std::size_t index,
      const TensorList& inputs,
      const TensorList& shards,
      const Call& call,
      std::string& form);
  std::vector<TensorList> split(const TensorList& inputs) const;
  TensorList forward_on_one(const TensorList& inputs, const Call& call);
  TensorList give_out(TensorList outputs) const;
};

ReplicaGroup::ReplicaGroup(
    std::shared_ptr<torch::nn::Module> module,
    ReplicaGroupOptions options) {
  check_torch_version();
  check_devices(options.devices);
  impl_ = std::make_unique<Impl>(std::move(module), std::move(options));
}

ReplicaGroup::~ReplicaGroup() = default;

std::span<const c10::Device> ReplicaGroup::devices() const {
  return impl_->replicas.devices();
}

torch::nn::Module& ReplicaGroup::replica(std::size_t index) const {
  return impl_->replicas.module(index);
}

std::unique_ptr<IntraOpThreadsGuard> ReplicaGroup::share_threads() const {
  if (impl_->pool == nullptr || !devices().front().is_cpu() ||
      !IntraOpThreadsGuard::is_available()) {
    return nullptr;
  }
  return std::make_unique<IntraOpThreadsGuard>(impl_->pool->intra_op_threads());
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

Traffic& ReplicaGroup::traffic() const {
  return *impl_->traffic;
}

void ReplicaGroup::rebuild() {
  if (impl_->pool != nullptr) {
    impl_->pool->check_outside();
  }
  const std::lock_guard lock(impl_->mutex);
  impl_->replicas.rebuild();
}

void ReplicaGroup::forget_sent() {
  const std::lock_guard lock(impl_->mutex);
  impl_->replicas.forget_sent();
}

// Runs in the replica's thread, under the caller's state.
ReplicaPass ReplicaGroup::Impl::run_replica(
    std::size_t index,
    const TensorList& inputs,
    const TensorList& shards,
    const Call& call,
    std::string& form) {
  ReplicaPass pass;
  if (is_connected) {
    pass.inputs = shards;
  } else {
    begin_graph(pass, shards, inputs);
  }
  const auto before = replicas.fingerprint(index);
  pass.begin = at::sequence_number::peek();
  pass.thread = at::RecordFunction::currentThreadId();
  ReplicaOutputs outputs = [&] {
    const StandInGuard own(replicas.stand_ins(index));
    return call(index, replicas.module(index), pass.inputs);
  }();
  replicas.check_unchanged(index, before);
  pass.outputs = std::move(outputs.tensors);
  pass.returned = pass.outputs.size();
  form = std::move(outputs.form);
  if (!is_connected) {
    find_changes(pass, shards, inputs, replicas.devices().front());
    form += changes_text(pass);
    find_exits(pass, replicas.parameters(), index);
  }
  return pass;
}

// Copies made in inference mode would not count what forward does to them.
std::vector<TensorList> ReplicaGroup::Impl::split(
    const TensorList& inputs) const {
  if (!c10::InferenceMode::is_enabled()) {
    return scatter(inputs, replicas.devices(), dim, streams);
  }
  const c10::InferenceMode no_inference(false);
  const at::NoGradGuard no_grad;
  return scatter(inputs, replicas.devices(), dim, streams);
}

TensorList ReplicaGroup::Impl::forward_on_one(
    const TensorList& inputs,
    const Call& call) {
  const auto& devices = replicas.devices();
  if (devices.front().is_cpu()) {
    return give_out(call(0, replicas.module(0), inputs).tensors);
  }
  {
    const std::lock_guard lock(mutex);
    replicas.follow(1, *traffic); // PyTorch, too, looks where the module is
  }
  const c10::DeviceGuard device(devices.front());
  const auto shards = scatter(inputs, devices, dim, streams);
  return give_out(call(0, replicas.module(0), shards.front()).tensors);
}

TensorList ReplicaGroup::Impl::give_out(TensorList outputs) const {
  for (at::Tensor& output : outputs) {
    if (is_output_named && output.defined() &&
        output.device() != output_device) {
      traffic->add(
          Cargo::kOutputs,
          0,
          {.copies = 1, .bytes = bytes_of(output)});
      output = output.to(output_device);
    }
  }
  return outputs;
}

TensorList ReplicaGroup::forward(const TensorList& inputs, const Call& call) {
  Impl& self = *impl_;
  if (self.pool == nullptr) {
    return self.forward_on_one(inputs, call);
  }
  self.pool->check_outside();
  const std::lock_guard lock(self.mutex);
  const auto& devices = self.replicas.devices();
  const std::vector<TensorList> shards = self.split(inputs);
  self.replicas.follow(shards.size(), *self.traffic);
  std::vector<std::string> forms(shards.size());
  JoinPlan plan{
      .pool = self.pool,
      .devices = devices,
      .streams = current_streams(devices),
      .output_device = self.output_device,
      .dim = self.dim,
      .inputs = inputs,
      .traffic = self.traffic,
      .nccl = self.nccl};
  plan.passes.resize(shards.size());
  PassStreams random;
  Turns turns(self.replicas.shares_children());
  const auto errors = self.pool->run(shards.size(), [&](std::size_t i) {
    const Turns::Mine turn(turns, i);
    const RandomStreamGuard numbers(random, i);
    const c10::StreamGuard stream(plan.streams[i]);
    plan.passes[i] = self.run_replica(i, inputs, shards[i], call, forms[i]);
  });
  rethrow_lowest(errors, devices, "parallel.forward");
  self.replicas.check_registered(shards.size());
  self.replicas.take_renormed(shards.size());
  count_batch(plan);
  check_same_forms(forms);
  if (self.is_connected) {
    check_same_graphs(plan.passes);
    return gather_all(plan);
  }
  self.check_strangers(plan.passes, self.replicas.parameters());
  std::ranges::for_each(plan.passes, &set_gates);
  write_back(plan.passes, inputs, self.dim);
  return join(std::move(plan), self.replicas.parameters());
}

} // namespace lockstep
