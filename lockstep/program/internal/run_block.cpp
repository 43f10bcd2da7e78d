// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <ATen/core/List.h>
#include <c10/util/Exception.h>

#include "lockstep/base/strings.h"
#include "lockstep/program/internal/block.h"
#include "lockstep/tensor/internal/wrapped_number.h"
#include "lockstep/tensor/norm_relu.h"

namespace lockstep::program {
namespace {

double real_of(const c10::IValue& value) {
  return value.isInt()    ? static_cast<double>(value.toInt())
         : value.isBool() ? (value.toBool() ? 1.0 : 0.0)
                          : value.toDouble();
}

void store(const Output& output, c10::IValue value, Frame& frame) {
  if (!output.is_list) {
    if (output.slot != kNoSlot) {
      frame.values[output.slot] = std::move(value);
    }
    return;
  }
  const auto tensors = value.toTensorList();
  TORCH_CHECK(
      tensors.size() == output.items.size(),
      "the operator gave ",
      tensors.size(),
      " tensors; the graph expects ",
      output.items.size());
  for (std::size_t i = 0; i < output.items.size(); ++i) {
    if (output.items[i] != kNoSlot) {
      frame.values[output.items[i]] = tensors.get(i);
    }
  }
}

template <class T, class Get>
c10::IValue make_list(const Input& input, Frame& frame, const Get& get) {
  c10::List<T> list;
  list.reserve(input.items.size());
  for (const Input& item : input.items) {
    list.push_back(get(value_of(item, frame)));
  }
  return list;
}

} // namespace

c10::IValue take_constant(const Input& input, Frame& /*frame*/) {
  return input.constant;
}

c10::IValue take_value(const Input& input, Frame& frame) {
  c10::IValue& value = frame.values[input.slot];
  return input.is_last_use ? std::move(value) : value;
}

c10::IValue take_wrapped(const Input& input, Frame& frame) {
  return wrapped_number(take_value(input, frame).toScalar());
}

c10::IValue take_real(const Input& input, Frame& frame) {
  return real_of(take_value(input, frame));
}

c10::IValue take_device(const Input& /*input*/, Frame& frame) {
  return frame.machine.device;
}

c10::IValue take_ints(const Input& input, Frame& frame) {
  return make_list<std::int64_t>(input, frame, [](const c10::IValue& value) {
    return value.toInt();
  });
}

c10::IValue take_reals(const Input& input, Frame& frame) {
  return make_list<double>(input, frame, real_of);
}

c10::IValue take_bools(const Input& input, Frame& frame) {
  return make_list<bool>(input, frame, [](const c10::IValue& value) {
    return value.toBool();
  });
}

c10::IValue take_tensors(const Input& input, Frame& frame) {
  return make_list<at::Tensor>(input, frame, [](c10::IValue value) {
    return std::move(value).toTensor();
  });
}

c10::IValue take_optional_tensors(const Input& input, Frame& frame) {
  return make_list<std::optional<at::Tensor>>(
      input,
      frame,
      [](c10::IValue value) {
        return std::move(value).toOptional<at::Tensor>();
      });
}

c10::IValue take_flag(const Input& input, Frame& frame) {
  return input.items[frame.machine.training[input.slot] != 0 ? 0 : 1].constant;
}

void push_inputs(const Step& step, Frame& frame) {
  frame.stack.clear();
  for (const Input& input : step.inputs) {
    frame.stack.push_back(value_of(input, frame));
  }
}

void call_operator(const Step& step, Frame& frame) {
  step.op->callBoxed(frame.stack);
  store_results(step, frame.stack, frame);
}

void run_operator(const Step& step, Frame& frame) {
  push_inputs(step, frame);
  if (step.check != nullptr) {
    step.check(frame.stack);
  }
  call_operator(step, frame);
}

void run_number(const Step& step, Frame& frame) {
  torch::jit::Stack values;
  for (const Input& input : step.inputs) {
    values.push_back(value_of(input, frame));
  }
  store(step.outputs.front(), step.number(values), frame);
}

void run_in_training(const Step& step, Frame& frame) {
  if (frame.machine.training[step.part] != 0) {
    run_operator(step, frame);
  } else {
    store(step.outputs.front(), value_of(step.inputs.front(), frame), frame);
  }
}

void store_results(
    const Step& step,
    std::vector<c10::IValue>& results,
    Frame& frame) {
  TORCH_CHECK(
      results.size() == step.outputs.size(),
      "the operator gave ",
      results.size(),
      " results; the graph expects ",
      step.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    store(step.outputs[i], std::move(results[i]), frame);
  }
}

std::vector<c10::IValue> run_block(
    const Block& block,
    std::vector<c10::IValue> inputs,
    const Machine& machine) {
  if (block.joined != nullptr && norms_take_epilogues()) {
    return run_block(*block.joined, std::move(inputs), machine);
  }
  Frame frame{.machine = machine};
  frame.values.resize(block.slots);
  for (std::size_t i = 0; i < block.inputs.size(); ++i) {
    if (block.inputs[i] != kNoSlot) {
      frame.values[block.inputs[i]] = std::move(inputs[i]);
    }
  }
  for (const Step& step : block.steps) {
    try {
      step.run(step, frame);
    } catch (c10::Error& error) {
      error.add_context("in the exported program, node " + step.place);
      throw;
    }
  }
  std::vector<c10::IValue> outputs;
  outputs.reserve(block.outputs.size());
  for (const Input& output : block.outputs) {
    outputs.push_back(value_of(output, frame));
  }
  return outputs;
}

} // namespace lockstep::program
