// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/compile.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/program/internal/checked_operators.h"
#include "lockstep/program/internal/join_norms.h"
#include "lockstep/program/internal/numbers.h"
#include "lockstep/program/internal/operators.h"
#include "lockstep/program/internal/program_data.h"
#include "lockstep/program/internal/recurrent.h"

namespace lockstep::program {
namespace {

using ckpt::ExportedArgument;
using ckpt::ExportedNamedArgument;
using ckpt::ExportedNode;
using Kind = ckpt::ExportedKind;

constexpr std::string_view kCounterAdd = "torch.ops.aten.add_.Tensor";
constexpr std::string_view kWithEffects = "torch.ops.higher_order.with_effects";
constexpr std::string_view kAssertScalar =
    "torch.ops.aten._assert_scalar.default";

// The innermost line of the user's Python: "net.py, line 9: y = f(x)".
std::string python_line(const std::string& trace) {
  std::string line;
  std::size_t at = trace.find("File \"");
  while (at != std::string::npos) {
    const std::size_t next = trace.find("File \"", at + 1);
    const std::string frame = trace.substr(at, next - at);
    if (line.empty() ||
        frame.find("site-packages/torch/") == std::string::npos) {
      line = frame;
    }
    at = next;
  }
  std::string text;
  for (const std::string& part : split(line, '\n')) {
    const std::size_t begin = part.find_first_not_of(' ');
    if (begin != std::string::npos) {
      text += (text.empty() ? "" : ": ") + part.substr(begin);
    }
  }
  return escape(text, 200);
}

std::string place_of(const ExportedNode& node) {
  const std::string line = python_line(node.stack_trace);
  return format(
      "{} ({}){}",
      escape(node.name),
      escape(node.target),
      line.empty() ? "" : ", " + line);
}

// torch._check of a condition that depends on the data.
void run_assertion(const Step& step, Frame& frame) {
  const c10::IValue holds = value_of(step.inputs.front(), frame);
  TORCH_CHECK(
      holds.isBool() ? holds.toBool() : holds.toScalar().toDouble() != 0.0,
      value_of(step.inputs.back(), frame).toStringRef());
}

bool names_value(const ExportedArgument& value) {
  return value.kind == Kind::kTensor || value.kind == Kind::kSymInt ||
         value.kind == Kind::kSymFloat || value.kind == Kind::kSymBool;
}

void mark_last_uses(std::vector<Input>& inputs, std::vector<bool>& is_used);

// Marks the last use of each slot, from behind.
void mark_last_uses(Input& input, std::vector<bool>& is_used) {
  mark_last_uses(input.items, is_used);
  if (input.slot != kNoSlot && input.make != take_flag) {
    input.is_last_use = !is_used[input.slot];
    is_used[input.slot] = true;
  }
}

void mark_last_uses(std::vector<Input>& inputs, std::vector<bool>& is_used) {
  std::for_each(inputs.rbegin(), inputs.rend(), [&is_used](Input& input) {
    mark_last_uses(input, is_used);
  });
}

// Values end with the last step that uses them; what none uses is not kept.
void mark_last_uses(Block& block) {
  std::vector<bool> is_used(block.slots, false);
  const auto drop_unused = [&is_used](Slot& slot) {
    slot = slot == kNoSlot || is_used[slot] ? slot : kNoSlot;
  };
  mark_last_uses(block.outputs, is_used);
  const auto visit = [&](Step& step) {
    for (Output& output : step.outputs) {
      drop_unused(output.slot);
      std::ranges::for_each(output.items, drop_unused);
    }
    mark_last_uses(step.inputs, is_used);
  };
  std::for_each(block.steps.rbegin(), block.steps.rend(), visit);
  std::ranges::for_each(block.inputs, drop_unused);
}

} // namespace

const ExportedNamedArgument* find_argument(
    const ExportedNode& node,
    std::string_view name) {
  const auto found =
      std::ranges::find(node.inputs, name, &ExportedNamedArgument::name);
  return found == node.inputs.end() ? nullptr : &*found;
}

void BlockCompiler::fail(const Step& step, std::string_view what) {
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "program.load",
       .message = format("node {}: {}", step.place, what),
       .detail = "E_PROGRAM"});
}

Slot BlockCompiler::define(const std::string& name) {
  const Slot slot = static_cast<Slot>(block_.slots++);
  names_.emplace(name, slot);
  return slot;
}

std::shared_ptr<const Block> BlockCompiler::run() {
  for (const ExportedArgument& input : graph_.inputs) {
    block_.inputs.push_back(names_value(input) ? define(input.text) : kNoSlot);
  }
  for (const ExportedNode& node : graph_.nodes) {
    compile_node(node);
  }
  if (!context_.problems.empty()) {
    return nullptr;
  }
  const Step step{.place = "of the results"};
  for (const ExportedArgument& output : graph_.outputs) {
    block_.outputs.push_back(input(output, step));
  }
  if (const auto joined = join_norms(block_)) {
    mark_last_uses(*joined);
    block_.joined = joined;
  }
  mark_last_uses(block_);
  return std::make_shared<const Block>(std::move(block_));
}

// (token, operator, arguments...) gives (token, results...).
ExportedNode BlockCompiler::call_with_effects(
    const ExportedNode& node,
    const Step& step) const {
  const bool is_call = node.inputs.size() >= 2 && !node.outputs.empty() &&
                       node.inputs[1].value.kind == Kind::kOperator &&
                       node.inputs[1].value.text != kWithEffects;
  if (!is_call) {
    fail(step, "expected (token, operator, arguments)");
  }
  ExportedNode call = node;
  call.target = node.inputs[1].value.text;
  call.inputs.erase(call.inputs.begin(), call.inputs.begin() + 2);
  call.outputs.erase(call.outputs.begin());
  const auto found = find_operator(call.target, context_.allowed).handle;
  for (std::size_t i = 0; found && i < call.inputs.size(); ++i) {
    const auto& arguments = found->schema().arguments();
    if (call.inputs[i].name.empty() && i < arguments.size()) {
      call.inputs[i].name = arguments[i].name();
    }
  }
  return call;
}

void BlockCompiler::compile_node(const ExportedNode& node) {
  Step step{.part = part_of(node), .place = place_of(node)};
  if (node.target == kWithEffects) {
    compile_node(call_with_effects(node, step));
    return;
  }
  const NumberRow* number = find_number_function(node.target);
  const HigherOrder* higher = find_higher_order(node.target);
  if (number != nullptr || node.target == kAssertScalar) {
    const std::size_t wanted = number != nullptr ? number->arguments : 2;
    if (node.inputs.size() != wanted ||
        (number != nullptr && node.outputs.size() != 1)) {
      fail(step, "it has another number of arguments or results");
    }
    for (const ExportedNamedArgument& argument : node.inputs) {
      step.inputs.push_back(input(argument.value, step));
    }
    step.run = number != nullptr ? run_number : run_assertion;
    step.number = number != nullptr ? number->function : nullptr;
  } else if (higher != nullptr) {
    higher->compile(*this, node, step);
  } else {
    compile_operator(node, step);
  }
  compile_outputs(node, step);
  block_.steps.push_back(std::move(step));
}

void BlockCompiler::compile_operator(const ExportedNode& node, Step& step) {
  const FoundOperator found = find_operator(node.target, context_.allowed);
  if (!found.handle) {
    context_.problems.insert(
        format("{}: {}", escape(node.target), found.problem));
    return;
  }
  step.op = std::make_shared<const c10::OperatorHandle>(*found.handle);
  step.run = counts_batches(node)              ? run_in_training
             : is_recurrent(step.op->schema()) ? run_recurrent
                                               : run_operator;
  step.check = find_check(step.op->schema());
  compile_inputs(node, step);
  compile_flag(node, step);
  note_views(node, step);
  note_changes(node, step);
  note_mode(node, step);
}

void BlockCompiler::compile_inputs(const ExportedNode& node, Step& step) {
  std::size_t known = 0;
  for (const c10::Argument& wanted : step.op->schema().arguments()) {
    const ExportedNamedArgument* given = find_argument(node, wanted.name());
    if (given != nullptr) {
      ++known;
      step.inputs.push_back(
          make_input(wanted, given->value, names_, step.place));
    } else if (wanted.default_value()) {
      step.inputs.push_back(
          {.make = take_constant, .constant = *wanted.default_value()});
    } else {
      fail(step, format("argument '{}' is missing", wanted.name()));
    }
  }
  if (known != node.inputs.size()) {
    fail(step, "it has an argument that its operator does not take");
  }
}

void BlockCompiler::compile_outputs(const ExportedNode& node, Step& step) {
  std::size_t given = node.outputs.size();
  for (const ExportedArgument& value : node.outputs) {
    Output& output = step.outputs.emplace_back();
    output.is_list = value.kind == Kind::kList;
    for (const ExportedArgument& item : value.items) {
      output.items.push_back(define(item.text));
    }
    if (names_value(value)) {
      output.slot = define(value.text);
    }
  }
  for (const auto& block : step.blocks) {
    if (block != nullptr && block->outputs.size() != given) {
      fail(step, "its graph has another number of results");
    }
  }
  if (!step.op) {
    return;
  }
  const std::size_t expected = step.op->schema().returns().size();
  if (expected == 0 && given == 1 && node.outputs[0].kind == Kind::kNone) {
    step.outputs.clear(); // an assertion
    given = 0;
  }
  if (given != expected) {
    fail(
        step,
        format(
            "its operator has another number of results; expected {}, got {}",
            expected,
            given));
  }
}

// Of "L__self__,,Net;L__self___bn,bn,torch.nn.modules.batchnorm.BatchNorm1d"
// the last module; the classes of all are noted.
std::size_t BlockCompiler::part_of(const ExportedNode& node) {
  std::size_t part = 0;
  for (const std::string& entry : split(node.module_stack, ';')) {
    const auto words = split(entry, ',');
    if (words.size() < 3) {
      continue;
    }
    // A module that is called again is "bn@1".
    const std::string path = words[1].substr(0, words[1].find('@'));
    const auto found = context_.parts.find(path);
    part = found == context_.parts.end() ? 0 : found->second;
    context_.part_classes.try_emplace(
        path,
        words[2].substr(words[2].rfind('.') + 1));
  }
  return part;
}

bool BlockCompiler::counts_batches(const ExportedNode& node) const {
  if (node.target != kCounterAdd || node.inputs.empty() ||
      node.inputs[0].value.kind != Kind::kTensor || node.outputs.size() != 1) {
    return false;
  }
  const auto known = own_.find(node.inputs[0].value.text);
  return known != own_.end() && is_batch_counter(known->second);
}

std::shared_ptr<const Block> BlockCompiler::inner(
    const ExportedArgument& graph,
    std::span<const ExportedArgument* const> operands) {
  if (graph.graph == nullptr) {
    fail({.place = "with a graph"}, "an argument is no graph");
  }
  if (graph.graph->inputs.size() != operands.size()) {
    fail(
        {.place = "with a graph"},
        format(
            "graph '{}' takes another number of values; expected {}, got {}",
            escape(graph.text),
            graph.graph->inputs.size(),
            operands.size()));
  }
  OwnNames own;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto known = own_.find(operands[i]->text);
    if (known != own_.end()) {
      own.emplace(graph.graph->inputs[i].text, known->second);
    }
  }
  return BlockCompiler(*graph.graph, context_, std::move(own)).run();
}

Input BlockCompiler::input(const ExportedArgument& value, const Step& step)
    const {
  return make_plain_input(value, names_, step.place);
}

} // namespace lockstep::program
