// SPDX-License-Identifier: BSD-3-Clause
//
// What one replica's forward left behind, and which parameters it used. The
// caller's graph leads to these only: as on one device, hooks of an unused
// parameter are not called, and backward does not visit it.
//
// Note [Leaves of nobody]
// Forward may reach leaves that are neither parameters nor inputs: a plain
// member, a tensor captured elsewhere. Replicas that share such a tensor add
// their gradients to it, as one device would. Each may also have one of its
// own, made inside forward, which nobody sees afterwards; but if a replica's
// own leaf comes back in the next pass, it is a member that clone() or a
// factory made anew: the module's has a part of the gradient only, which is an
// error. So is a layer that was assigned to a member after wrapping, which
// replica 0 alone uses, and a tensor that was computed outside of forward: its
// graph belongs to no replica. One that was computed from a parameter, in
// reset() for example, has a graph in the module only: the replicas' gradients
// would be lost. A tensor that an earlier forward computed and
// the module kept (a hidden state) leads to that pass's inputs, whose gradient
// nobody would pick up: an error, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/internal/parameter_rows.h"

namespace lockstep::parallel {

/// One place where a parameter's gradient leaves a replica's graph.
struct GraphExit {
  torch::autograd::Edge edge = {};
  /// The replica's parameter.
  at::Tensor leaf = {};
  /// Of the parameter, in `ReplicaSet::parameters()`.
  std::size_t row = 0;
};

/// How a graph leads to the parameter of a row.
struct Ways {
  std::size_t count = 0;
  /// One whose last node was there before the pass, if any.
  const torch::autograd::Node* older = nullptr;
};

/// A leaf that is neither a parameter nor an input.
struct Stranger {
  torch::autograd::Edge edge = {};
  at::Tensor leaf = {};
  /// Where this replica's graph leaves for `edge` (gradient_gates.h).
  torch::autograd::Edge gate = {};
};

/// A node of a replica's graph, and which of its edges leads to an end. The
/// graph holds the node.
struct Joint {
  torch::autograd::Node* node = nullptr;
  std::size_t place = 0;
};

/// One replica's part of a pass.
struct ReplicaPass {
  /// The shards it was given.
  TensorList inputs = {};
  /// Where their gradients leave the replica's graph; invalid where none are
  /// wanted. Known before forward, which may change an input in place.
  std::vector<torch::autograd::Edge> input_edges = {};
  /// Places of the inputs that forward changed in place, and of those among
  /// them that take gradients.
  std::vector<std::size_t> changed = {};
  std::vector<std::size_t> rewritten = {};
  /// Results, with the replica's graph; behind the `returned` ones of forward,
  /// the rewritten inputs.
  TensorList outputs = {};
  std::size_t returned = 0;
  /// Where the graph of each output begins; invalid where it has none.
  std::vector<torch::autograd::Edge> roots = {};
  /// Where that graph ends in parameters, in the order of the rows.
  std::vector<GraphExit> exits = {};
  /// Where it ends otherwise: Note [Leaves of nobody].
  std::vector<Stranger> strangers = {};
  /// All edges to ends.
  std::vector<Joint> joints = {};
  /// The number of the first node that the pass made: LibTorch numbers those of
  /// each thread by themselves.
  std::uint64_t begin = 0;
  /// LibTorch's number of the thread that ran the pass.
  std::uint64_t thread = 0;
  /// By the row; empty without a graph.
  std::vector<Ways> ways = {};
};

/// The parameters of one replica, to know them at the end of a graph.
/// Ownership: `rows` outlive it.
class GraphEnds {
 public:
  GraphEnds(std::span<const ParameterRow> rows, std::size_t replica);

  [[nodiscard]] std::size_t rows() const noexcept {
    return rows_.size();
  }
  /// Those to which `edge`, or its gate, leads.
  [[nodiscard]] std::vector<GraphExit> at(
      const torch::autograd::Edge& edge) const;

 private:
  std::span<const ParameterRow> rows_;
  std::size_t replica_ = 0;
  std::unordered_map<const c10::TensorImpl*, std::size_t> row_of_ = {};
};

/// Fills in where the graph of `pass.outputs` begins and where it leads to:
/// roots, exits, strangers, joints and ways. Goes through the nodes that the
/// pass made; without a graph, in an evaluation, there is nothing to go
/// through.
/// Threads: that of the pass.
/// Errors: throws kUnsupported if it leads to an input of another pass.
void find_exits(ReplicaPass& pass, const GraphEnds& ends);

/// Finds gradients that would be lost from pass to pass.
/// Threads: one at a time.
class StrangerCheck {
 public:
  /// Errors: throws kUnsupported for a node that several replicas reach, for
  /// a leaf that came back and for a graph to a parameter that only the
  /// module's member has, kMismatch where replica 0 uses a leaf in place of a
  /// parameter; see Note [Leaves of nobody].
  void operator()(
      std::span<const ReplicaPass> passes,
      std::span<const ParameterRow> rows);

 private:
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl>;
  // Leaves that replica 0 reached in some pass, and those that only others did.
  std::vector<WeakTensor> shared_ = {};
  std::vector<WeakTensor> lone_ = {};
};

/// What can be told of connected graphs. Errors: throws kUnsupported if only
/// some replicas' results have a graph.
void check_same_graphs(std::span<const ReplicaPass> passes);

/// The strangers of all passes, each once.
std::vector<torch::autograd::Edge> all_strangers(
    std::span<const ReplicaPass> passes);

/// The master of each row that any of `passes` used; undefined for the others.
TensorList used_masters(
    std::span<const ReplicaPass> passes,
    std::span<const ParameterRow> rows);

/// True if a replica's result `output` has a graph.
bool any_requires_grad(std::span<const ReplicaPass> passes, std::size_t output);

} // namespace lockstep::parallel
