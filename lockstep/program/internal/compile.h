// SPDX-License-Identifier: BSD-3-Clause
//
// Compiles the graph of an exported program into a block.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/formats/exported/exported_graph.h"
#include "lockstep/program/internal/block.h"
#include "lockstep/program/internal/schema_arguments.h"

namespace lockstep::program {

/// What all graphs of a program share while they are compiled.
struct CompileContext {
  /// `ProgramOptions::allow`.
  std::span<const std::string> allowed = {};
  /// Places of the module's parts by path; the module itself is "".
  std::map<std::string, std::size_t, std::less<>> parts = {};
  /// Classes of the parts by path: "Linear".
  std::map<std::string, std::string, std::less<>> part_classes = {};
  /// Places of the parts that call aten::batch_norm.
  std::set<std::size_t> batch_norms = {};
  /// "aten.x.default: unknown", of all nodes.
  std::set<std::string> problems = {};
  /// Nodes that behave as in training and cannot be switched.
  std::vector<std::string> unswitchable = {};
  /// Parameters and buffers that a node changes whatever the mode.
  std::set<std::string> changed = {};
  /// Results of nodes that the mode decides about.
  std::set<std::string, std::less<>> switched = {};
  /// Nodes that draw random numbers whatever the mode.
  std::vector<std::string> draws = {};
  /// Training flags, and those that are on.
  std::size_t flags = 0;
  std::size_t flags_on = 0;
  /// Where the weights were when the net was exported: "cpu"; empty if the file
  /// does not say.
  std::string device_type = {};
};

/// Parameters and buffers of the net by the names that they, and views of them,
/// have in a graph.
using OwnNames = std::map<std::string, std::string, std::less<>>;

/// An argument of a node by its name; null if the node does not give it.
const ckpt::ExportedNamedArgument* find_argument(
    const ckpt::ExportedNode& node,
    std::string_view name);

class BlockCompiler;

/// A function of graphs: torch.cond and its like.
struct HigherOrder {
  std::string_view target = {};
  /// Sets how `step` runs.
  void (*compile)(
      BlockCompiler& compiler,
      const ckpt::ExportedNode& node,
      Step& step) = nullptr;
};

/// Null if unknown.
const HigherOrder* find_higher_order(std::string_view target);

/// Compiles one graph; those inside have compilers of their own.
class BlockCompiler {
 public:
  /// `own`: those among the graph's inputs.
  BlockCompiler(
      const ckpt::ExportedGraph& graph,
      CompileContext& context,
      OwnNames own)
      : graph_(graph), context_(context), own_(std::move(own)) {}

  /// Errors: throws kCorrupt or kUnsupported (E_PROGRAM); operators that are
  /// missing go to the context, and the block is null then.
  std::shared_ptr<const Block> run();

  /// For `HigherOrder::compile`: a graph among the arguments, whose inputs are
  /// `operands`, in the caller's names.
  std::shared_ptr<const Block> inner(
      const ckpt::ExportedArgument& graph,
      std::span<const ckpt::ExportedArgument* const> operands);
  /// As in the context.
  [[nodiscard]] const std::string& device_type() const noexcept {
    return context_.device_type;
  }
  /// An argument as it is.
  Input input(const ckpt::ExportedArgument& value, const Step& step) const;
  /// Errors: throws kUnsupported (E_PROGRAM) for arguments that a function of
  /// graphs does not have.
  [[noreturn]] static void fail(const Step& step, std::string_view what);

 private:
  void compile_node(const ckpt::ExportedNode& node);
  void compile_operator(const ckpt::ExportedNode& node, Step& step);
  [[nodiscard]] ckpt::ExportedNode call_with_effects(
      const ckpt::ExportedNode& node,
      const Step& step) const;
  void compile_inputs(const ckpt::ExportedNode& node, Step& step);
  void compile_flag(const ckpt::ExportedNode& node, Step& step);
  void note_changes(const ckpt::ExportedNode& node, const Step& step);
  void note_views(const ckpt::ExportedNode& node, const Step& step);
  void note_mode(const ckpt::ExportedNode& node, const Step& step);
  void compile_outputs(const ckpt::ExportedNode& node, Step& step);
  [[nodiscard]] std::size_t part_of(const ckpt::ExportedNode& node);
  [[nodiscard]] bool counts_batches(const ckpt::ExportedNode& node) const;
  Slot define(const std::string& name);

  const ckpt::ExportedGraph& graph_;
  CompileContext& context_;
  OwnNames own_;
  Names names_ = {};
  Block block_ = {};
};

} // namespace lockstep::program
