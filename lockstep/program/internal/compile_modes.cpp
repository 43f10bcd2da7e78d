// SPDX-License-Identifier: BSD-3-Clause
//
// Training and evaluation: what a graph does in one of them, and what it does
// in both.
#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/program/internal/compile.h"
#include "lockstep/program/internal/operators.h"

namespace lockstep::program {
namespace {

using ckpt::ExportedArgument;
using ckpt::ExportedNamedArgument;
using ckpt::ExportedNode;
using Kind = ckpt::ExportedKind;

// What a norm with a flag changes.
constexpr std::string_view kStatistics = "running_mean";
// Of an embedding with max_norm, in Python in any mode as well.
constexpr std::string_view kRenorm = "aten::embedding_renorm_";

// "Dropout2d" for what torch.nn.Dropout2d calls.
std::string class_of(const ExportedNode& node) {
  const std::string entry =
      node.module_stack.substr(node.module_stack.rfind(';') + 1);
  const auto words = split(entry, ',');
  return words.size() < 3 ? "" : words[2].substr(words[2].rfind('.') + 1);
}

bool repeats(const ckpt::ExportedTensorMeta& meta) {
  for (std::size_t d = 0; d < meta.strides.size(); ++d) {
    if (d < meta.sizes.size() && meta.strides[d].value == 0 &&
        meta.sizes[d].value != 1) {
      return true;
    }
  }
  return false;
}

// What may be a copy is a view if it has the type and the strides of what it
// views; after a reshape, if no element is repeated.
bool is_copied(
    const ckpt::ExportedGraph& graph,
    const ExportedNode& node,
    std::string_view op) {
  const auto from = graph.tensors.find(node.inputs[0].value.text);
  const auto to = graph.tensors.find(node.outputs[0].text);
  if (from == graph.tensors.end() || to == graph.tensors.end()) {
    return false;
  }
  const auto* copy = find_argument(node, "copy");
  const bool keeps_strides = op == "aten::contiguous" || op == "aten::to";
  const bool reshapes = op == "aten::reshape" || op == "aten::flatten";
  return from->second.dtype != to->second.dtype ||
         (copy != nullptr && copy->value.integer != 0) ||
         (keeps_strides && from->second.strides != to->second.strides) ||
         (reshapes && repeats(from->second));
}

} // namespace

// The argument that training turns on; what is exported off stays off.
void BlockCompiler::compile_flag(const ExportedNode& node, Step& step) {
  if (step.op->schema().name() == "aten::batch_norm") {
    context_.batch_norms.insert(step.part);
  }
  const FlagRow* flag = find_flag(step.op->schema());
  if (flag == nullptr) {
    return;
  }
  if (flag->only_with == kStatistics) { // behind the result the new ones
    for (std::size_t i = 1; i < node.outputs.size(); ++i) {
      context_.switched.insert(node.outputs[i].text);
    }
  }
  const auto& arguments = step.op->schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ExportedNamedArgument* other = find_argument(node, flag->only_with);
    const bool counts = flag->only_with.empty() ||
                        (other != nullptr && other->value.kind != Kind::kNone);
    Input& input = step.inputs[i];
    if (arguments[i].name() != flag->argument || !counts ||
        input.make != take_constant) {
      continue;
    }
    const bool is_real = input.constant.isDouble();
    const c10::IValue off = is_real ? c10::IValue(0.0) : c10::IValue(false);
    const bool is_on =
        is_real ? input.constant.toDouble() != 0.0 : input.constant.toBool();
    // Attention without dropout has no flag.
    context_.flags += is_on || !is_real ? 1 : 0;
    context_.flags_on += is_on ? 1 : 0;
    if (is_on) {
      Input on = std::move(input);
      input = {.make = take_flag, .slot = static_cast<Slot>(step.part)};
      input.items.push_back(std::move(on));
      input.items.push_back({.make = take_constant, .constant = off});
    }
  }
}

// A view's first argument is what it views.
void BlockCompiler::note_views(const ExportedNode& node, const Step& step) {
  const auto& results = step.op->schema().returns();
  const auto known =
      node.inputs.empty() ? own_.end() : own_.find(node.inputs[0].value.text);
  if (known == own_.end() || results.empty() || node.outputs.empty() ||
      results[0].alias_info() == nullptr ||
      is_copied(graph_, node, step.op->schema().name())) {
    return;
  }
  const std::string target = known->second;
  for (const ExportedArgument& view : node.outputs) {
    own_.emplace(view.text, target);
    for (const ExportedArgument& item : view.items) {
      own_.emplace(item.text, target);
    }
  }
}

// Batch norms change their statistics by a flag, their counters by the mode.
void BlockCompiler::note_changes(const ExportedNode& node, const Step& step) {
  const c10::FunctionSchema& schema = step.op->schema();
  if (!schema.is_mutable() || find_flag(schema) != nullptr ||
      step.run == run_in_training || is_unswitchable(schema) ||
      schema.name() == kRenorm) {
    return;
  }
  for (const c10::Argument& argument : schema.arguments()) {
    const auto* given = find_argument(node, argument.name());
    const bool is_written =
        argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (is_written && given != nullptr) {
      const auto known = own_.find(given->value.text);
      if (known != own_.end()) {
        context_.changed.insert(known->second);
      }
    }
  }
}

// What has no flag, and trains, or may, in any mode.
void BlockCompiler::note_mode(const ExportedNode& node, const Step& step) {
  if (never_trains(step.op->schema())) {
    context_.flags += 1;
    return;
  }
  const bool draws = step.op->hasTag(at::Tag::nondeterministic_seeded) &&
                     find_flag(step.op->schema()) == nullptr;
  // Decomposed: random numbers and arithmetic.
  const bool is_dropout =
      draws && class_of(node).find("Dropout") != std::string::npos;
  if (is_unswitchable(step.op->schema()) || is_dropout) {
    context_.unswitchable.push_back(step.place);
  } else if (draws) {
    context_.draws.push_back(step.place);
  }
}

} // namespace lockstep::program
