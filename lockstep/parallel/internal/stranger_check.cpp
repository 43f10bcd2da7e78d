// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <unordered_map>

#include <torch/csrc/autograd/function.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/parallel/internal/replica_pass.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::parallel {
namespace {

namespace autograd = torch::autograd;

constexpr const char* kCheckOp = "parallel.forward";

[[noreturn]] void raise_outside(const autograd::Node& node) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = kCheckOp,
       .message = format(
           "forward uses a tensor that was computed outside of it ({}) and "
           "takes a gradient: its graph belongs to no replica",
           node.name()),
       .hint = "compute it in forward, or set .connected_graph = true"});
}

[[noreturn]] void raise_derived(const std::string& what, std::size_t replica) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = kCheckOp,
       .message = format(
           "the module's forward uses {}, and replica {} has no graph in its "
           "place: the gradient would be lost",
           what,
           replica),
       .hint = "a member that is computed from a parameter in reset() or "
               "between passes (half = table.narrow(0, 0, 4)) has a graph in "
               "the module only: compute it in forward"});
}

// Ways to a parameter that were there before the pass, in replica 0 only.
void check_derived(
    std::span<const ReplicaPass> passes,
    std::span<const ParameterRow> rows) {
  const std::vector<Ways>& first = passes.front().ways;
  for (std::size_t row = 0; row < first.size(); ++row) {
    for (std::size_t r = 1; first[row].older && r < passes.size(); ++r) {
      const auto& ways = passes[r].ways;
      if (ways.empty() || ways[row].count < first[row].count) {
        raise_derived(
            format(
                "a tensor that was computed from '{}' before the pass ({})",
                rows[row].name,
                first[row].older->name()),
            r);
      }
    }
  }
}

[[noreturn]] void raise_lone(const at::Tensor& leaf, std::size_t replica) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = kCheckOp,
       .message = format(
           "replica {} has a tensor {} of its own that takes a gradient and is "
           "neither a parameter nor an input: that gradient would be lost",
           replica,
           size_text(leaf.sizes())),
       .hint = "register it with register_parameter"});
}

[[noreturn]] void raise_replaced(
    const at::Tensor& leaf,
    const std::string& parameter,
    std::size_t replica) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = kCheckOp,
       .message = format(
           "the module uses a tensor {} that is registered nowhere where "
           "replica {} uses the parameter '{}'",
           size_text(leaf.sizes()),
           replica,
           parameter),
       .hint =
           "a layer that is assigned to a member stays unregistered; write "
           "net->fc = net->replace_module(\"fc\", torch::nn::Linear(...))"});
}

bool is_master(std::span<const ParameterRow> rows, const at::Tensor& leaf) {
  return std::ranges::any_of(rows, [&leaf](const ParameterRow& row) {
    return row.master.is_same(leaf);
  });
}

// A node that two replicas reach leads to a leaf that both reach, which is a
// stranger to one of them.
void check_shared_nodes(std::span<const ReplicaPass> passes) {
  const bool has_strangers = std::ranges::any_of(passes, [](const auto& pass) {
    return !pass.strangers.empty();
  });
  if (!has_strangers) {
    return;
  }
  std::unordered_map<const autograd::Node*, std::size_t> owner;
  for (std::size_t r = 0; r < passes.size(); ++r) {
    for (const Joint& joint : passes[r].joints) {
      if (owner.try_emplace(joint.node, r).first->second != r) {
        raise_outside(*joint.node);
      }
    }
  }
}

bool reaches(const ReplicaPass& pass, const at::Tensor& leaf) {
  return std::ranges::any_of(pass.strangers, [&leaf](const Stranger& other) {
    return other.leaf.is_same(leaf);
  });
}

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl>;

bool is_known(const std::vector<WeakTensor>& list, const at::Tensor& leaf) {
  return std::ranges::any_of(list, [&leaf](const WeakTensor& tensor) {
    return tensor._unsafe_get_target() == leaf.unsafeGetTensorImpl();
  });
}

// A stranger that replica 0 alone reaches and a parameter that it alone does
// not: of the same sizes, or of others if the stranger is no leaf of this pass,
// as an expert that some shards use and a leaf that forward made would be.
void check_replaced(
    std::span<const ReplicaPass> passes,
    std::span<const ParameterRow> rows,
    const std::vector<WeakTensor>& seen) {
  const ReplicaPass& first = passes.front();
  const auto is_alone = [&](const GraphExit& other) {
    return std::ranges::find(first.exits, other.row, &GraphExit::row) ==
           first.exits.end();
  };
  for (std::size_t r = 1; r < passes.size(); ++r) {
    for (const Stranger& stranger : first.strangers) {
      if (reaches(passes[r], stranger.leaf)) {
        continue;
      }
      const bool was_seen = is_known(seen, stranger.leaf);
      const auto exit =
          std::ranges::find_if(passes[r].exits, [&](const GraphExit& other) {
            return is_alone(other) &&
                   (was_seen || other.leaf.sizes() == stranger.leaf.sizes());
          });
      if (exit != passes[r].exits.end()) {
        raise_replaced(stranger.leaf, rows[exit->row].name, r);
      }
    }
  }
}

} // namespace

void StrangerCheck::operator()(
    std::span<const ReplicaPass> passes,
    std::span<const ParameterRow> rows) {
  check_replaced(passes, rows, shared_);
  const bool has_graph = std::ranges::any_of(passes, [](const auto& pass) {
    return std::ranges::any_of(pass.roots, &autograd::Edge::is_valid);
  });
  if (!has_graph) {
    return; // an evaluation tells nothing
  }
  check_shared_nodes(passes);
  check_derived(passes, rows);
  for (auto* list : {&shared_, &lone_}) {
    std::erase_if(*list, [](const WeakTensor& leaf) { return leaf.expired(); });
  }
  for (const Stranger& stranger : passes.front().strangers) {
    if (!is_known(shared_, stranger.leaf)) {
      shared_.emplace_back(stranger.leaf.getIntrusivePtr());
    }
  }
  for (std::size_t r = 1; r < passes.size(); ++r) {
    for (const Stranger& stranger : passes[r].strangers) {
      if (is_known(shared_, stranger.leaf) || is_master(rows, stranger.leaf)) {
        continue;
      }
      if (is_known(lone_, stranger.leaf)) {
        raise_lone(stranger.leaf, r);
      }
      lone_.emplace_back(stranger.leaf.getIntrusivePtr());
    }
  }
}

void check_same_graphs(std::span<const ReplicaPass> passes) {
  const ReplicaPass& first = passes.front();
  for (std::size_t r = 1; r < passes.size(); ++r) {
    for (std::size_t k = 0; k < first.returned; ++k) {
      const at::Tensor& ours = first.outputs[k];
      const at::Tensor& theirs = passes[r].outputs[k];
      if (ours.defined() && theirs.defined() && ours.requires_grad() &&
          !theirs.requires_grad()) {
        raise_derived("a tensor with a graph", r);
      }
    }
  }
}

} // namespace lockstep::parallel
