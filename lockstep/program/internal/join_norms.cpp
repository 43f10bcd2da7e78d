// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/join_norms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>

#include "lockstep/tensor/norm_relu.h"

namespace lockstep::program {
namespace {

constexpr std::string_view kNorm = "aten::batch_norm";
constexpr std::array<std::string_view, 2> kAdds{"aten::add", "aten::add_"};
constexpr std::array<std::string_view, 2> kRelus{"aten::relu", "aten::relu_"};
// Places of batch_norm's arguments.
constexpr std::size_t kRunningMean = 3;
constexpr std::size_t kRunningVar = 4;
constexpr std::size_t kNormArguments = 9;
// How many steps a norm may wait for what is added to it.
constexpr std::size_t kLongestWait = 64;

template <std::size_t N>
bool calls(const Step& step, const std::array<std::string_view, N>& names) {
  return step.run == run_operator &&
         std::ranges::find(names, std::string_view(step.op->schema().name())) !=
             names.end();
}

bool calls_sum(const Step& step) {
  return calls(step, kAdds) && step.op->schema().overload_name() == "Tensor";
}

// Calls `visit` with each slot that is read.
template <class Visit>
void for_each_read(const std::vector<Input>& inputs, const Visit& visit) {
  for (const Input& input : inputs) {
    if (input.slot != kNoSlot && input.make != take_flag) {
      visit(input.slot);
    }
    for_each_read(input.items, visit);
  }
}

bool reads(const Step& step, Slot slot) {
  bool found = false;
  for_each_read(step.inputs, [&](Slot other) { found |= other == slot; });
  return found;
}

/// The steps of `relu(bn(x) + y)`.
struct Match {
  std::size_t norm = 0;
  std::optional<std::size_t> add = {};
  std::size_t relu = 0;
  /// y.
  Input addend = {};
  /// The graph has `y + bn(x)`.
  bool is_first = false;
};

class Matcher {
 public:
  explicit Matcher(const Block& block) : block_(block), readers_(block.slots) {
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
      const bool is_norm = calls(block.steps[i], std::array{kNorm});
      for_each_read(block.steps[i].inputs, [&](Slot slot) {
        readers_[slot].count += 1;
        readers_[slot].step = i;
        readers_[slot].are_norms = readers_[slot].are_norms && is_norm;
      });
    }
    for_each_read(block.outputs, [&](Slot slot) { readers_[slot].count += 2; });
  }

  [[nodiscard]] std::optional<Match> match(std::size_t norm) const {
    const std::vector<Step>& steps = block_.steps;
    if (!calls(steps[norm], std::array{kNorm}) ||
        steps[norm].inputs.size() != kNormArguments) {
      return std::nullopt;
    }
    const auto next = only_reader(norm);
    if (!next) {
      return std::nullopt;
    }
    Match match{.norm = norm, .relu = *next};
    if (calls_sum(steps[*next])) {
      const auto relu = only_reader(*next);
      const auto addend = addend_of(steps[*next], steps[norm]);
      if (!relu || !addend) {
        return std::nullopt;
      }
      const bool is_first =
          steps[*next].inputs[0].slot != result_of(steps[norm]);
      match = {norm, next, *relu, *addend, is_first};
    }
    return calls(steps[match.relu], kRelus) && can_wait(match)
               ? std::optional(match)
               : std::nullopt;
  }

 private:
  struct Readers {
    std::size_t count = 0;
    /// The last one.
    std::size_t step = 0;
    bool are_norms = true;
  };

  static Slot result_of(const Step& step) {
    return step.outputs.size() == 1 ? step.outputs.front().slot : kNoSlot;
  }

  // The step that reads the result of step `at`, if nothing else does.
  [[nodiscard]] std::optional<std::size_t> only_reader(std::size_t at) const {
    const Slot slot = result_of(block_.steps[at]);
    return slot != kNoSlot && readers_[slot].count == 1
               ? std::optional(readers_[slot].step)
               : std::nullopt;
  }

  // The other summand of `add`, which must not be scaled. A sum in place
  // changes its first.
  static std::optional<Input> addend_of(const Step& add, const Step& norm) {
    const Slot normalised = result_of(norm);
    const Input& first = add.inputs.at(0);
    const Input& second = add.inputs.at(1);
    const bool is_first = first.slot == normalised;
    const bool is_in_place = add.op->schema().is_mutable();
    const Input& other = is_first ? second : first;
    const Input& scale = add.inputs.at(2);
    const bool is_one = scale.make == take_constant && scale.constant.isInt() &&
                        scale.constant.toInt() == 1;
    const bool fits = is_one && other.make == take_value &&
                      other.slot != normalised && (is_first || !is_in_place);
    return fits ? std::optional(other) : std::nullopt;
  }

  // Whether the norm gives the same where its ReLU is, and nobody sees that its
  // statistics change later. The counter of its batches is nothing that it
  // reads.
  [[nodiscard]] bool can_wait(const Match& match) const {
    const Slot mean = block_.steps[match.norm].inputs[kRunningMean].slot;
    const Slot var = block_.steps[match.norm].inputs[kRunningVar].slot;
    const auto is_seen = [this](Slot slot) {
      return slot != kNoSlot && !readers_[slot].are_norms;
    };
    if (match.relu - match.norm > kLongestWait || is_seen(mean) ||
        is_seen(var)) {
      return false;
    }
    for (std::size_t i = match.norm + 1; i < match.relu; ++i) {
      const Step& step = block_.steps[i];
      if (i == match.add || step.run == run_in_training ||
          step.run == run_number) {
        continue;
      }
      const bool shares_statistics = (mean != kNoSlot && reads(step, mean)) ||
                                     (var != kNoSlot && reads(step, var));
      if (step.run != run_operator || step.op->schema().is_mutable() ||
          shares_statistics) {
        return false;
      }
    }
    return true;
  }

  const Block& block_;
  // By slot.
  std::vector<Readers> readers_;
};

// Whether the sum has the norm's type and layout, whatever the order.
bool fits_norm(
    const Step& step,
    const at::Tensor& addend,
    const at::Tensor& x) {
  return !addend.defined() ||
         (addend.sizes() == x.sizes() &&
          addend.scalar_type() == x.scalar_type() &&
          (!step.adds_to_first || addend.strides() == x.strides()));
}

at::Tensor sum_of(
    const Step& step,
    const at::Tensor& normalised,
    const at::Tensor& addend) {
  if (step.sums_in_place) {
    return normalised.add_(addend);
  }
  return step.adds_to_first ? at::add(addend, normalised)
                            : at::add(normalised, addend);
}

// An addend that the norm's kernels would not take is added as the graph says.
void run_norm_with_epilogue(const Step& step, Frame& frame) {
  torch::jit::Stack& stack = frame.stack;
  stack.clear();
  for (std::size_t i = 0; i < kNormArguments; ++i) {
    stack.push_back(value_of(step.inputs[i], frame));
  }
  if (step.check != nullptr) {
    step.check(stack);
  }
  at::Tensor addend;
  if (step.inputs.size() > kNormArguments) {
    addend = value_of(step.inputs.back(), frame).toTensor();
  }
  const at::Tensor x = stack.front().toTensor();
  at::Tensor result;
  if (fits_norm(step, addend, x)) {
    const NormEpilogue relu(addend);
    step.op->callBoxed(stack);
    result = relu.complete(stack.front().toTensor());
  } else {
    step.op->callBoxed(stack);
    result = at::relu(sum_of(step, stack.front().toTensor(), addend));
  }
  stack.front() = std::move(result);
  store_results(step, stack, frame);
}

Step joined(const Block& block, const Match& match) {
  Step step = block.steps[match.norm];
  step.run = run_norm_with_epilogue;
  step.outputs = block.steps[match.relu].outputs;
  if (match.add) {
    step.inputs.push_back(match.addend);
    step.sums_in_place = block.steps[*match.add].op->schema().is_mutable();
    step.adds_to_first = match.is_first;
  }
  return step;
}

} // namespace

std::shared_ptr<Block> join_norms(const Block& block) {
  const Matcher matcher(block);
  // By step: the norm that runs there; what runs with another step.
  std::vector<std::optional<Match>> matches(block.steps.size());
  std::vector<bool> is_joined(block.steps.size(), false);
  bool is_any = false;
  for (std::size_t i = 0; i < block.steps.size(); ++i) {
    const auto match = matcher.match(i);
    if (match && !matches[match->relu]) {
      matches[match->relu] = match;
      is_joined[match->norm] = true;
      is_joined[match->add.value_or(match->norm)] = true;
      is_any = true;
    }
  }
  if (!is_any) {
    return nullptr;
  }
  auto result = std::make_shared<Block>(Block{
      .inputs = block.inputs,
      .outputs = block.outputs,
      .slots = block.slots});
  for (std::size_t i = 0; i < block.steps.size(); ++i) {
    if (const std::optional<Match>& match = matches[i]) {
      result->steps.push_back(joined(block, *match));
    } else if (!is_joined[i]) {
      result->steps.push_back(block.steps[i]);
    }
  }
  return result;
}

} // namespace lockstep::program
