// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/pass.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/SequenceNumber.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/internal/streams.h"
#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/internal/changed_inputs.h"
#include "lockstep/parallel/internal/gradient_gates.h"
#include "lockstep/parallel/internal/random_stream.h"
#include "lockstep/parallel/internal/turns.h"
#include "lockstep/parallel/replica_group.h"
#include "lockstep/tensor/internal/trace_spans.h"

namespace lockstep::parallel {
namespace {

// The shards that went to other devices and the outputs that come back.
void count_batch(const JoinPlan& plan) {
  for (std::size_t r = 0; r < plan.passes.size(); ++r) {
    const auto count = [&](Cargo cargo, const at::Tensor& part, bool is_moved) {
      if (part.defined() && is_moved) {
        plan.context->traffic.add(
            cargo,
            r,
            {.copies = 1, .bytes = bytes_of(part)});
      }
    };
    const ReplicaPass& pass = plan.passes[r];
    for (std::size_t i = 0; i < pass.inputs.size(); ++i) {
      const at::Tensor& whole = plan.inputs[i];
      count(
          Cargo::kInputs,
          pass.inputs[i],
          whole.defined() && whole.device() != plan.context->devices[r]);
    }
    for (std::size_t k = 0; k < pass.returned; ++k) {
      const at::Tensor& output = pass.outputs[k];
      count(
          Cargo::kOutputs,
          output,
          output.defined() && output.device() != plan.context->output_device);
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

void check_registered(const std::vector<std::string>& names) {
  for (std::size_t r = 0; r < names.size(); ++r) {
    if (!names[r].empty()) {
      raise(
          {.code = ErrorCode::kUnsupported,
           .op = "parallel.forward",
           .message = format(
               "forward registered '{}' in replica {}: expected what the "
               "module had when it was wrapped, since each replica makes one "
               "of its own",
               names[r],
               r),
           .hint = "register it in reset(); or make one pass before wrapping, "
                   "and pass a .factory that returns a module which has made "
                   "one, too"});
    }
  }
}

// One result for each output of forward.
TensorList gather_all(const JoinPlan& plan) {
  TensorList results;
  for (std::size_t k = 0; k < plan.passes.front().returned; ++k) {
    TensorList parts;
    parts.reserve(plan.passes.size());
    for (const ReplicaPass& pass : plan.passes) {
      parts.push_back(pass.outputs[k]);
    }
    results.push_back(
        gather(parts, plan.context->output_device, plan.context->dim));
  }
  return results;
}

// Hangs the first `returned` of `tensors`, and the caller's inputs behind them,
// on `node`, where they are differentiable.
void hang_on(
    const torch::autograd::Edge& node,
    const TensorList& tensors,
    const std::vector<bool>& differentiable,
    std::size_t returned) {
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    if (!differentiable[k]) {
      node.function->add_input_metadata(
          torch::autograd::Node::undefined_input{});
      continue;
    }
    torch::autograd::Edge edge(
        node.function,
        node.function->add_input_metadata(tensors[k]));
    if (k < returned) {
      torch::autograd::impl::set_gradient_edge(tensors[k], std::move(edge));
    } else {
      // LibTorch takes what was changed in place for a node's only output.
      torch::autograd::impl::rebase_history(
          tensors[k],
          gate_before(std::move(edge), tensors[k]));
    }
  }
}

} // namespace

Pass::Pass(
    PassParts& parts,
    const TensorList& inputs,
    const ReplicaGroup::Call& call)
    : parts_(parts),
      call_(call),
      plan_{.context = parts.context, .inputs = inputs} {}

// A connected replica's graph leads through its shards. Others begin there:
// nothing has to record how they were cut. Copies made in inference mode would
// not count what forward does to them.
void Pass::split() {
  std::optional<c10::InferenceMode> no_inference;
  std::optional<at::AutoDispatchBelowADInplaceOrView> unrecorded;
  if (c10::InferenceMode::is_enabled()) {
    no_inference.emplace(false);
  }
  if (no_inference || !parts_.is_connected) {
    unrecorded.emplace();
  }
  shards_ = scatter(
      plan_.inputs,
      plan_.context->devices,
      plan_.context->dim,
      parts_.copy_streams);
}

void Pass::follow() {
  parts_.replicas.follow(shards_.size(), plan_.context->traffic);
}

void Pass::run() {
  const std::size_t count = shards_.size();
  const auto& devices = plan_.context->devices;
  plan_.passes.resize(count);
  plan_.streams = current_streams(devices);
  forms_.resize(count);
  numbers_.resize(count);
  registered_.resize(count);
  PassStreams random;
  Turns turns(parts_.replicas.shares_children());
  const auto errors = plan_.context->pool->run(count, [&](std::size_t i) {
    const Turns::Mine turn(turns, i);
    const RandomStreamGuard numbers(random, i);
    const c10::StreamGuard stream(plan_.streams[i]);
    plan_.passes[i] = run_replica(i);
  });
  rethrow_lowest(errors, devices, "parallel.forward");
}

// Runs in the replica's thread, under the caller's state.
ReplicaPass Pass::run_replica(std::size_t index) {
  const TraceSpan span("forward", "replica", index);
  ReplicaPass pass;
  const TensorList& shards = shards_[index];
  const ReplicaSet& replicas = parts_.replicas;
  if (parts_.is_connected) {
    pass.inputs = shards;
  } else {
    begin_graph(pass, shards, plan_.inputs);
  }
  pass.begin = at::sequence_number::peek();
  pass.thread = at::RecordFunction::currentThreadId();
  ReplicaOutputs outputs;
  {
    const StandInGuard own(replicas.stand_ins(index));
    outputs = call_(index, replicas.module(index), pass.inputs);
  }
  replicas.check_unchanged(index);
  registered_[index] = replicas.registered(index);
  pass.outputs = std::move(outputs.tensors);
  pass.returned = pass.outputs.size();
  forms_[index] = std::move(outputs.form);
  numbers_[index] = std::move(outputs.number);
  if (!parts_.is_connected) {
    find_changes(pass, shards, plan_.inputs, replicas.devices().front());
    forms_[index] += changes_text(pass);
    find_exits(pass, replicas.ends(index));
  }
  return pass;
}

void Pass::gate() {
  ReplicaSet& replicas = parts_.replicas;
  check_registered(registered_);
  replicas.take_renormed(shards_.size());
  count_batch(plan_);
  check_no_numbers(numbers_);
  check_same_forms(forms_);
  if (parts_.is_connected) {
    check_same_graphs(plan_.passes);
    return;
  }
  parts_.check_strangers(plan_.passes, replicas.parameters());
  std::ranges::for_each(plan_.passes, &set_gates);
  write_back(plan_.passes, plan_.inputs, plan_.context->dim);
}

TensorList Pass::join() {
  if (parts_.is_connected) {
    return gather_all(plan_);
  }
  TensorList results;
  {
    const at::AutoDispatchBelowADInplaceOrView unrecorded;
    results = gather_all(plan_);
  }
  TensorList targets = results;
  for (const std::size_t place : plan_.passes.front().rewritten) {
    targets.push_back(plan_.inputs[place]);
  }
  std::vector<bool> differentiable;
  differentiable.reserve(targets.size());
  for (std::size_t k = 0; k < targets.size(); ++k) {
    differentiable.push_back(
        targets[k].defined() && any_requires_grad(plan_.passes, k));
  }
  if (std::ranges::find(differentiable, true) != differentiable.end()) {
    const TensorList used =
        used_masters(plan_.passes, parts_.replicas.parameters());
    const auto node = make_join_node(std::move(plan_), used);
    hang_on(node, targets, differentiable, results.size());
  }
  return results;
}

} // namespace lockstep::parallel
