// SPDX-License-Identifier: BSD-3-Clause
//
// Functions of graphs: blocks without gradients or with autocast, and branches
// that depend on the data.
#include <algorithm>
#include <array>
#include <utility>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "lockstep/base/strings.h"
#include "lockstep/program/internal/compile.h"

namespace lockstep::program {
namespace {

using ckpt::ExportedArgument;
using ckpt::ExportedNode;
using Kind = ckpt::ExportedKind;

std::vector<c10::IValue>
take_inputs(const Step& step, std::size_t first, Frame& frame) {
  std::vector<c10::IValue> values;
  for (std::size_t i = first; i < step.inputs.size(); ++i) {
    values.push_back(value_of(step.inputs[i], frame));
  }
  return values;
}

void run_inner(
    const Step& step,
    std::vector<c10::IValue> values,
    Frame& frame) {
  auto results =
      run_block(*step.blocks.front(), std::move(values), frame.machine);
  store_results(step, results, frame);
}

// Arguments before the graph, the graph, its operands.
void compile_wrapped(
    BlockCompiler& compiler,
    const ExportedNode& node,
    std::size_t graph_at,
    Step& step) {
  if (node.inputs.size() <= graph_at) {
    BlockCompiler::fail(step, "it has too few arguments");
  }
  std::vector<const ExportedArgument*> operands;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ExportedArgument& value = node.inputs[i].value;
    if (i != graph_at) {
      step.inputs.push_back(compiler.input(value, step));
    }
    if (i > graph_at) {
      operands.push_back(&value);
    }
  }
  step.blocks.push_back(compiler.inner(node.inputs[graph_at].value, operands));
}

void run_grad_mode(const Step& step, Frame& frame) {
  const at::AutoGradMode mode(step.inputs[0].constant.toBool());
  run_inner(step, take_inputs(step, 1, frame), frame);
}

void compile_grad_mode(
    BlockCompiler& compiler,
    const ExportedNode& node,
    Step& step) {
  compile_wrapped(compiler, node, 1, step);
  if (!step.inputs[0].constant.isBool()) {
    BlockCompiler::fail(step, "expected True or False");
  }
  step.run = run_grad_mode;
}

/// The autocast of this thread for a device, until its end.
class AutocastBlock {
 public:
  // `dtype` and `cache`: None for what is set.
  AutocastBlock(
      c10::DeviceType device,
      bool enabled,
      const c10::IValue& dtype,
      const c10::IValue& cache)
      : device_(device),
        was_enabled_(at::autocast::is_autocast_enabled(device)),
        had_cache_(at::autocast::is_autocast_cache_enabled()),
        old_dtype_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_cache_enabled(
        cache.isNone() ? had_cache_ : cache.toBool());
    if (!dtype.isNone()) {
      at::autocast::set_autocast_dtype(
          device,
          static_cast<at::ScalarType>(dtype.toInt()));
    }
    at::autocast::increment_nesting();
  }
  ~AutocastBlock() {
    if (at::autocast::decrement_nesting() == 0) {
      at::autocast::clear_cache();
    }
    at::autocast::set_autocast_enabled(device_, was_enabled_);
    at::autocast::set_autocast_cache_enabled(had_cache_);
    at::autocast::set_autocast_dtype(device_, old_dtype_);
  }
  AutocastBlock(const AutocastBlock&) = delete;
  AutocastBlock& operator=(const AutocastBlock&) = delete;

 private:
  c10::DeviceType device_;
  bool was_enabled_;
  bool had_cache_;
  at::ScalarType old_dtype_;
};

// (device, dtype or None, enabled, cache or None, graph, operands)
constexpr std::size_t kAutocastGraph = 4;

// None for the machine's: an autocast of a device that the net is not on, as
// torch.autocast("cuda") is on a CPU, must not touch that of the net's.
c10::IValue autocast_device(
    const ExportedArgument& device,
    const BlockCompiler& compiler,
    const Step& step) {
  const std::string& home = compiler.device_type();
  if (device.kind != Kind::kString) {
    BlockCompiler::fail(step, "expected the name of a device");
  }
  if (home.empty() || device.text == home) {
    return {};
  }
  try {
    return static_cast<std::int64_t>(c10::Device(device.text).type());
  } catch (const c10::Error&) {
    BlockCompiler::fail(
        step,
        format("there is no device '{}'", escape(device.text)));
  }
}

void run_autocast(const Step& step, Frame& frame) {
  const c10::IValue& device = step.inputs[0].constant;
  const AutocastBlock autocast(
      device.isNone() ? frame.machine.device.type()
                      : static_cast<c10::DeviceType>(device.toInt()),
      step.inputs[2].constant.toBool(),
      step.inputs[1].constant,
      step.inputs[3].constant);
  run_inner(step, take_inputs(step, kAutocastGraph, frame), frame);
}

void compile_autocast(
    BlockCompiler& compiler,
    const ExportedNode& node,
    Step& step) {
  compile_wrapped(compiler, node, kAutocastGraph, step);
  const Kind dtype = node.inputs[1].value.kind;
  const c10::IValue& cache = step.inputs[3].constant;
  if (!step.inputs[2].constant.isBool() ||
      !(cache.isNone() || cache.isBool()) ||
      !(dtype == Kind::kNone || dtype == Kind::kScalarType)) {
    BlockCompiler::fail(step, "expected (device, dtype, enabled, cache)");
  }
  step.inputs[0].constant =
      autocast_device(node.inputs[0].value, compiler, step);
  step.run = run_autocast;
}

// Gives the operands of a branch on, and zeros as gradients of those that it
// does not use: an optimizer with momentum sees a gradient in Python, too.
struct BranchOperands : torch::autograd::Function<BranchOperands> {
  static torch::autograd::variable_list forward(
      torch::autograd::AutogradContext* context,
      at::TensorList operands) {
    context->set_materialize_grads(true);
    torch::autograd::variable_list outputs;
    for (const at::Tensor& operand : operands) {
      outputs.push_back(operand.view_as(operand));
    }
    return outputs;
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* /*context*/,
      torch::autograd::variable_list gradients) {
    return gradients;
  }
};

void run_cond(const Step& step, Frame& frame) {
  const c10::IValue chosen = value_of(step.inputs.front(), frame);
  const bool is_first = chosen.isTensor() ? chosen.toTensor().item().toBool()
                                          : chosen.toScalar().toBool();
  auto values = take_inputs(step, 1, frame);
  std::vector<at::Tensor> tensors;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].isTensor() && values[i].toTensor().requires_grad()) {
      tensors.push_back(values[i].toTensor());
      places.push_back(i);
    }
  }
  if (!tensors.empty() && at::GradMode::is_enabled()) {
    const auto routed = BranchOperands::apply(at::TensorList(tensors));
    for (std::size_t i = 0; i < places.size(); ++i) {
      values[places[i]] = routed[i];
    }
  }
  auto results = run_block(
      *step.blocks[is_first ? 0 : 1],
      std::move(values),
      frame.machine);
  store_results(step, results, frame);
}

void compile_cond(
    BlockCompiler& compiler,
    const ExportedNode& node,
    Step& step) {
  if (node.inputs.size() < 3) {
    BlockCompiler::fail(step, "expected (condition, graph, graph, operands)");
  }
  step.inputs.push_back(compiler.input(node.inputs[0].value, step));
  std::vector<const ExportedArgument*> operands;
  for (std::size_t i = 3; i < node.inputs.size(); ++i) {
    for (const ExportedArgument& operand : node.inputs[i].value.items) {
      operands.push_back(&operand);
      step.inputs.push_back(compiler.input(operand, step));
    }
  }
  step.blocks.push_back(compiler.inner(node.inputs[1].value, operands));
  step.blocks.push_back(compiler.inner(node.inputs[2].value, operands));
  step.run = run_cond;
}

constexpr std::array kHigherOrder = {
    HigherOrder{
        "torch.ops.higher_order.wrap_with_set_grad_enabled",
        compile_grad_mode},
    HigherOrder{"torch.ops.higher_order.wrap_with_autocast", compile_autocast},
    HigherOrder{"torch.ops.higher_order.cond", compile_cond},
};

} // namespace

const HigherOrder* find_higher_order(std::string_view target) {
  const auto* row =
      std::ranges::find(kHigherOrder, target, &HigherOrder::target);
  return row == kHigherOrder.end() ? nullptr : &*row;
}

} // namespace lockstep::program
