// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/replica_pass.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/internal/gradient_gates.h"

namespace lockstep::parallel {
namespace {

namespace autograd = torch::autograd;

constexpr const char* kForwardOp = "parallel.forward";

[[noreturn]] void raise_kept_state() {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = kForwardOp,
       .message = "forward uses a tensor that an earlier forward computed from "
                  "its input (a hidden state that the module kept): the "
                  "gradient of that input would be lost",
       .hint = "detach() what is kept, pass it as input and result, or set "
               ".connected_graph = true"});
}

// Goes through one replica's graph, from its outputs to its ends.
class Walk {
 public:
  Walk(ReplicaPass& pass, const GraphEnds& ends)
      : pass_(pass),
        ends_(ends),
        made_(at::sequence_number::peek() - pass.begin) {
    pass.ways.resize(ends.rows());
  }

  void run() {
    for (const autograd::Edge& root : pass_.roots) {
      visit(root);
    }
    while (!open_.empty()) {
      autograd::Node* node = open_.back();
      open_.pop_back();
      for (std::size_t i = 0; i < node->num_outputs(); ++i) {
        const End* end = visit(node->next_edge(i));
        if (end != nullptr && end->is_reached) {
          pass_.joints.push_back({.node = node, .place = i});
          note_way(*node, *end);
        }
      }
    }
    std::ranges::sort(pass_.exits, {}, &GraphExit::row);
  }

 private:
  // A node that the pass did not make.
  struct End {
    bool is_reached = false;
    std::vector<std::size_t> rows = {};
  };

  [[nodiscard]] bool is_made_here(const autograd::Node& node) const {
    return node.thread_id() == pass_.thread &&
           node.sequence_nr() >= pass_.begin &&
           node.sequence_nr() - pass_.begin < made_.size();
  }

  // The end to which `edge` leads, if it is none of the pass's own nodes.
  const End* visit(const autograd::Edge& edge) {
    autograd::Node* node = edge.function.get();
    if (node == nullptr) {
      return nullptr;
    }
    if (is_made_here(*node)) {
      const autograd::Node*& seen = made_[node->sequence_nr() - pass_.begin];
      if (seen != node) {
        seen = node;
        open_.push_back(node);
      }
      return nullptr;
    }
    const auto [known, is_new] = older_.try_emplace(node);
    if (is_new) {
      begin(edge, known->second);
    }
    return &known->second;
  }

  void begin(const autograd::Edge& edge, End& end) {
    autograd::Node* node = edge.function.get();
    const bool is_input = std::ranges::any_of(
        pass_.input_edges,
        [node](const auto& input) { return input.function.get() == node; });
    if (is_input) {
      return;
    }
    if (is_input_gate(*node)) {
      raise_kept_state();
    }
    // A former pass may have set a gate before an end.
    const bool has_gate = is_gate(*node);
    const autograd::Edge& last = has_gate ? node->next_edge(0) : edge;
    for (GraphExit& exit : ends_.at(last)) {
      if (has_gate) {
        exit.edge = edge;
      }
      end.rows.push_back(exit.row);
      pass_.exits.push_back(std::move(exit));
    }
    const auto* leaf =
        dynamic_cast<const autograd::AccumulateGrad*>(last.function.get());
    end.is_reached = leaf != nullptr || !end.rows.empty();
    if (!end.is_reached) {
      open_.push_back(node);
    } else if (end.rows.empty()) {
      pass_.strangers.push_back(
          {.edge = last, .leaf = leaf->variable, .gate = edge});
    }
  }

  void note_way(const autograd::Node& from, const End& end) {
    for (const std::size_t row : end.rows) {
      Ways& ways = pass_.ways[row];
      ++ways.count;
      ways.older = is_made_here(from) ? ways.older : &from;
    }
  }

  ReplicaPass& pass_;
  const GraphEnds& ends_;
  // By number: those that were visited.
  std::vector<const autograd::Node*> made_;
  std::unordered_map<const autograd::Node*, End> older_ = {};
  std::vector<autograd::Node*> open_ = {};
};

} // namespace

GraphEnds::GraphEnds(std::span<const ParameterRow> rows, std::size_t replica)
    : rows_(rows), replica_(replica) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const at::Tensor& leaf : rows[row].leaves[replica]) {
      row_of_.emplace(leaf.unsafeGetTensorImpl(), row);
    }
  }
}

std::vector<GraphExit> GraphEnds::at(const autograd::Edge& edge) const {
  const autograd::Node* node = edge.function.get();
  if (const auto* leaf = dynamic_cast<const autograd::AccumulateGrad*>(node)) {
    const at::Tensor& variable = leaf->variable;
    const auto known = row_of_.find(variable.unsafeGetTensorImpl());
    if (known == row_of_.end() || !variable.requires_grad()) {
      return {};
    }
    return {{.edge = edge, .leaf = variable, .row = known->second}};
  }
  // A parameter that was computed; its node may give others, too.
  std::vector<GraphExit> exits;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    for (const at::Tensor& leaf : rows_[row].leaves[replica_]) {
      if (leaf.grad_fn().get() == node) {
        exits.push_back(
            {.edge = autograd::impl::gradient_edge(leaf),
             .leaf = leaf,
             .row = row});
      }
    }
  }
  return exits;
}

void find_exits(ReplicaPass& pass, const GraphEnds& ends) {
  bool has_graph = false;
  for (const at::Tensor& output : pass.outputs) {
    const bool is_root = output.defined() && output.requires_grad();
    pass.roots.push_back(
        is_root ? autograd::impl::gradient_edge(output) : autograd::Edge());
    has_graph = has_graph || is_root;
  }
  if (has_graph) {
    Walk(pass, ends).run();
  }
}

std::vector<autograd::Edge> all_strangers(std::span<const ReplicaPass> passes) {
  autograd::edge_list edges;
  std::unordered_set<const autograd::Node*> known;
  for (const ReplicaPass& pass : passes) {
    for (const Stranger& stranger : pass.strangers) {
      if (known.insert(stranger.edge.function.get()).second) {
        edges.push_back(stranger.edge);
      }
    }
  }
  return edges;
}

TensorList used_masters(
    std::span<const ReplicaPass> passes,
    std::span<const ParameterRow> rows) {
  TensorList used(rows.size());
  for (const ReplicaPass& pass : passes) {
    for (const GraphExit& exit : pass.exits) {
      used[exit.row] = rows[exit.row].master;
    }
  }
  return used;
}

bool any_requires_grad(
    std::span<const ReplicaPass> passes,
    std::size_t output) {
  return std::ranges::any_of(passes, [output](const ReplicaPass& pass) {
    const at::Tensor& tensor = pass.outputs[output];
    return tensor.defined() && tensor.requires_grad();
  });
}

} // namespace lockstep::parallel
