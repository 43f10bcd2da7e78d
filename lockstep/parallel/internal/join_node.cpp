// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/join_node.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/internal/branches.h"
#include "lockstep/parallel/internal/changed_inputs.h"
#include "lockstep/parallel/internal/gradient_gates.h"
#include "lockstep/parallel/internal/gradient_sum.h"
#include "lockstep/parallel/internal/random_stream.h"
#include "lockstep/parallel/replica_group.h"
#include "lockstep/tensor/internal/compat.h"
#include "lockstep/tensor/internal/trace_spans.h"

namespace lockstep::parallel {
namespace {

namespace autograd = torch::autograd;

// The gradients of the edges [begin, end), of each replica.
std::vector<TensorList> take_edges(
    std::vector<TensorList>& gradients,
    std::size_t begin,
    std::size_t end) {
  std::vector<TensorList> taken(gradients.size());
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    for (std::size_t edge = begin; edge < end; ++edge) {
      taken[r].push_back(std::move(gradients[r][edge]));
    }
  }
  return taken;
}

bool takes_gradient(const JoinPlan& plan, std::size_t input) {
  return plan.passes.front().input_edges[input].is_valid();
}

class JoinNode final : public autograd::Node {
 public:
  JoinNode(
      JoinPlan plan,
      const TensorList& used,
      autograd::edge_list next_edges);

  std::string name() const override {
    return "LockstepJoinBackward";
  }
  autograd::variable_list apply(autograd::variable_list&& grads) override;
  void release_variables() override {
    const std::lock_guard lock(mutex_);
    branches_.reset();
  }

 private:
  using Branches = std::vector<Branch>;

  std::shared_ptr<const Branches> take_branches();
  std::vector<TensorList> split(
      const Branches& branches,
      const autograd::variable_list& grads) const;
  std::vector<TensorList> run_all(
      const Branches& branches,
      const std::vector<TensorList>& grads,
      const std::vector<bool>& needed,
      bool keep_graph) const;
  at::Tensor join_input_gradient(
      const Branches& branches,
      std::size_t edge,
      std::vector<TensorList>& gradients) const;
  at::Tensor move_counted(
      const at::Tensor& gradient,
      std::size_t replica,
      c10::Device device) const;

  std::shared_ptr<PassContext> context_;
  std::vector<c10::Stream> streams_;
  // Edges lead to parameters, then to strangers, then to inputs.
  std::size_t parameter_edges_ = 0;
  std::size_t leaf_edges_ = 0;
  // Of each input that takes a gradient, in the order of their edges.
  std::vector<c10::Device> input_devices_;
  std::mutex mutex_;
  InputWatch watch_;
  // Several outputs may be differentiated in several threads: the first to end
  // releases what the others still use.
  std::shared_ptr<const Branches> branches_;
};

JoinNode::JoinNode(
    JoinPlan plan,
    const TensorList& used,
    autograd::edge_list next_edges)
    : Node(std::move(next_edges)),
      context_(std::move(plan.context)),
      streams_(std::move(plan.streams)),
      watch_(plan.passes, plan.inputs) {
  BranchPlan made = make_branches(plan.passes, used);
  parameter_edges_ = made.parameter_edges;
  leaf_edges_ = made.leaf_edges;
  branches_ = std::make_shared<const Branches>(std::move(made.branches));
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    if (takes_gradient(plan, i)) {
      input_devices_.push_back(plan.inputs[i].device());
    }
  }
}

// A gradient of an output or of an input, to or from a replica.
at::Tensor JoinNode::move_counted(
    const at::Tensor& gradient,
    std::size_t replica,
    c10::Device device) const {
  if (gradient.device() != device) {
    context_->traffic.add(
        Cargo::kBatchGradients,
        replica,
        {.copies = 1, .bytes = bytes_of(gradient)});
  }
  return gradient.device() == device ? gradient : gradient.to(device);
}

// The incoming gradients, cut like the outputs they belong to.
std::vector<TensorList> JoinNode::split(
    const Branches& branches,
    const autograd::variable_list& grads) const {
  const at::AutoDispatchBelowADInplaceOrView unrecorded;
  std::vector<TensorList> parts(branches.size());
  for (std::size_t k = 0; k < grads.size(); ++k) {
    std::int64_t start = 0;
    for (std::size_t r = 0; r < branches.size(); ++r) {
      const at::Tensor& output = branches[r].outputs[k];
      if (!grads[k].defined() || !output.defined() || !output.requires_grad()) {
        parts[r].emplace_back();
      } else if (output.dim() == 0) {
        parts[r].push_back(grads[k].select(0, static_cast<std::int64_t>(r)));
      } else {
        parts[r].push_back(
            grads[k].narrow(context_->dim, start, output.size(context_->dim)));
      }
      if (output.defined() && output.dim() > 0) {
        start += output.size(context_->dim);
      }
      if (parts[r].back().defined()) {
        parts[r].back() =
            move_counted(parts[r].back(), r, context_->devices[r]);
      }
    }
  }
  return parts;
}

// Note [Backward on devices]
// On the CPU each replica's thread runs its own pass; replica 0's runs in this
// one, nested in the caller's pass. The engine has one thread per other device,
// and this node runs in one of them: waiting here for workers would keep that
// device's own pass waiting. So one nested engine call takes all passes; the
// engine's threads run them at the same time, this one too.
std::vector<TensorList> JoinNode::run_all(
    const Branches& branches,
    const std::vector<TensorList>& grads,
    const std::vector<bool>& needed,
    bool keep_graph) const {
  const std::size_t count = branches.size();
  if (!context_->devices.front().is_cpu()) {
    return run_branches(branches, grads, needed, keep_graph);
  }
  std::vector<TensorList> gradients(count);
  PassStreams streams;
  const auto errors = context_->pool->run(count, [&](std::size_t r) {
    const TraceSpan span("backward", "replica", r);
    const RandomStreamGuard stream(streams, r);
    gradients[r] = std::move(run_branches(
                                 std::span(branches).subspan(r, 1),
                                 std::span(grads).subspan(r, 1),
                                 needed,
                                 keep_graph)
                                 .front());
  });
  rethrow_lowest(errors, context_->devices, "parallel.backward");
  return gradients;
}

at::Tensor JoinNode::join_input_gradient(
    const Branches& branches,
    std::size_t edge,
    std::vector<TensorList>& gradients) const {
  bool any = false;
  for (const TensorList& of_replica : gradients) {
    any = any || of_replica[edge].defined();
  }
  if (!any) {
    return {};
  }
  TensorList parts;
  const c10::Device device = input_devices_[edge - leaf_edges_];
  for (std::size_t r = 0; r < branches.size(); ++r) {
    for (const auto& [input_edge, shard] : branches[r].inputs) {
      if (input_edge == edge) {
        const at::Tensor& gradient = gradients[r][edge];
        parts.push_back(move_counted(
            gradient.defined() ? gradient : at::zeros_like(shard),
            r,
            device));
      }
    }
  }
  return at::cat(parts, context_->dim);
}

std::shared_ptr<const JoinNode::Branches> JoinNode::take_branches() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(branches_ != nullptr, autograd::ERR_BACKWARD_TWICE);
  watch_.pass_changes_on();
  return branches_;
}

autograd::variable_list JoinNode::apply(autograd::variable_list&& grads) {
  if (autograd::GradMode::is_enabled()) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "parallel.backward",
         .message = "create_graph is not possible through several replicas",
         .hint = "set .connected_graph = true"});
  }
  // The engine sets the first device's stream only; gradients live in those of
  // the forward pass.
  const c10::MultiStreamGuard streams(streams_);
  const auto branches = take_branches();
  const bool keep_graph = autograd::get_current_graph_task_keep_graph();
  std::vector<bool> needed(num_outputs());
  for (std::size_t edge = 0; edge < needed.size(); ++edge) {
    needed[edge] = task_should_compute_output(edge);
  }
  const std::vector<TensorList> parts = split(*branches, grads);
  grads.clear();
  std::vector<TensorList> gradients =
      run_all(*branches, parts, needed, keep_graph);
  TensorList inputs;
  for (std::size_t edge = leaf_edges_; edge < needed.size(); ++edge) {
    inputs.push_back(join_input_gradient(*branches, edge, gradients));
  }
  const TraceSpan span("sum of gradients");
  const at::AutoDispatchBelowADInplaceOrView unrecorded;
  // Each where its leaf is.
  const TensorList strangers = sum_in_replica_order(
      // Note [Backward on devices]
      context_->devices.front().is_cpu() ? context_->pool.get() : nullptr,
      take_edges(gradients, parameter_edges_, leaf_edges_));
  TensorList result = sum_on_first_device(
      {.pool = *context_->pool,
       .devices = context_->devices,
       .traffic = context_->traffic,
       .nccl = context_->nccl.get()},
      take_edges(gradients, 0, parameter_edges_));
  result.insert(result.end(), strangers.begin(), strangers.end());
  result.insert(result.end(), inputs.begin(), inputs.end());
  return result;
}

autograd::edge_list edges_of(const JoinPlan& plan, const TensorList& used) {
  autograd::edge_list edges;
  for (const at::Tensor& master : used) {
    if (master.defined()) {
      edges.push_back(autograd::impl::gradient_edge(master));
    }
  }
  std::ranges::copy(all_strangers(plan.passes), std::back_inserter(edges));
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    if (takes_gradient(plan, i)) {
      edges.push_back(autograd::impl::gradient_edge(plan.inputs[i]));
    }
  }
  return edges;
}

} // namespace

autograd::Edge make_join_node(JoinPlan plan, const TensorList& used) {
  autograd::edge_list edges = edges_of(plan, used);
  return {make_node<JoinNode>(std::move(plan), used, std::move(edges)), 0};
}

} // namespace lockstep::parallel
