// SPDX-License-Identifier: BSD-3-Clause
//
// A graph of an exported program, compiled once: operators are resolved,
// constants are made, names are numbers. It holds no weights and is shared by
// all replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <c10/core/Device.h>

namespace lockstep::program {

struct Block;
struct Input;
struct Step;

/// Place of a value in a frame.
using Slot = std::uint32_t;
/// For what nobody uses.
inline constexpr Slot kNoSlot = std::numeric_limits<Slot>::max();

/// What a run depends on beside its inputs.
struct Machine {
  /// Where literals of devices in the graph point to.
  c10::Device device = c10::kCPU;
  /// Whether each part of the module is in training mode.
  std::span<const std::uint8_t> training = {};
};

/// The values of one run of a block.
struct Frame {
  const Machine& machine;
  /// By slot.
  std::vector<c10::IValue> values = {};
  torch::jit::Stack stack = {};
};

using MakeInput = c10::IValue (*)(const Input& input, Frame& frame);

/// How an argument of an operator is made.
struct Input {
  MakeInput make = nullptr;
  c10::IValue constant = {};
  Slot slot = kNoSlot;
  /// The value is moved out of its slot, so that it ends with the operator.
  bool is_last_use = false;
  /// Elements of a list, or the two values of a training flag.
  std::vector<Input> items = {};
};

/// Where a result goes.
struct Output {
  Slot slot = kNoSlot;
  /// Of a list of tensors each.
  std::vector<Slot> items = {};
  bool is_list = false;
};

/// A function of numbers as Python has it.
using NumberFunction = c10::IValue (*)(std::span<const c10::IValue> values);

/// One call.
struct Step {
  void (*run)(const Step& step, Frame& frame) = nullptr;
  std::shared_ptr<const c10::OperatorHandle> op = {};
  NumberFunction number = nullptr;
  /// Looks at the arguments of `op` before it is called; null for none.
  void (*check)(const torch::jit::Stack& stack) = nullptr;
  std::vector<Input> inputs = {};
  std::vector<Output> outputs = {};
  std::vector<std::shared_ptr<const Block>> blocks = {};
  /// Of a norm that is joined with a sum (join_norms.h): the sum is in place,
  /// and what is added is its first argument.
  bool sums_in_place = false;
  bool adds_to_first = false;
  /// The part whose mode decides, of a step that is only for training.
  std::size_t part = 0;
  /// "conv2d_1 (aten.conv2d.default)", with the last line of Python.
  std::string place = {};
};

/// Steps in their order.
struct Block {
  std::vector<Slot> inputs = {};
  std::vector<Step> steps = {};
  std::vector<Input> outputs = {};
  std::size_t slots = 0;
  /// The same for when the process's batch norms take what follows them
  /// (join_norms.h); null if nothing does.
  std::shared_ptr<const Block> joined = {};
};

/// Runs `block`; `inputs` as many as it has.
/// Errors: throws c10::Error of an operator with the place in the graph added.
std::vector<c10::IValue> run_block(
    const Block& block,
    std::vector<c10::IValue> inputs,
    const Machine& machine);

/// The value of an input in `frame`.
inline c10::IValue value_of(const Input& input, Frame& frame) {
  return input.make(input, frame);
}

// Ways to make an input.
c10::IValue take_constant(const Input& input, Frame& frame);
c10::IValue take_value(const Input& input, Frame& frame);
/// A named number as a tensor without dimensions, as Python passes it.
c10::IValue take_wrapped(const Input& input, Frame& frame);
/// A named number as a float.
c10::IValue take_real(const Input& input, Frame& frame);
c10::IValue take_device(const Input& input, Frame& frame);
c10::IValue take_ints(const Input& input, Frame& frame);
c10::IValue take_reals(const Input& input, Frame& frame);
c10::IValue take_bools(const Input& input, Frame& frame);
c10::IValue take_tensors(const Input& input, Frame& frame);
c10::IValue take_optional_tensors(const Input& input, Frame& frame);
/// `items[0]` while the part `slot` trains, else `items[1]`.
c10::IValue take_flag(const Input& input, Frame& frame);

// Ways to run a step.
void run_operator(const Step& step, Frame& frame);
void run_number(const Step& step, Frame& frame);
/// An addition in place that only training makes.
void run_in_training(const Step& step, Frame& frame);

/// The two halves of `run_operator`: its arguments to the stack, and the call.
void push_inputs(const Step& step, Frame& frame);
void call_operator(const Step& step, Frame& frame);

/// Stores the results of a step.
void store_results(
    const Step& step,
    std::vector<c10::IValue>& results,
    Frame& frame);

} // namespace lockstep::program
