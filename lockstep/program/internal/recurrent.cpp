// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/recurrent.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <c10/util/Exception.h>

namespace lockstep::program {
namespace {

/// A layer of ATen: (input, hx, params, has_biases, num_layers, dropout, train,
/// bidirectional, batch_first).
struct RecurrentRow {
  std::string_view name = {};
  /// Rows of its weights for each number of the state.
  std::int64_t gates = 1;
  /// hx is the state and the cells.
  bool has_cells = false;
};
constexpr std::array kRecurrent = {
    RecurrentRow{"aten::lstm", 4, true},
    RecurrentRow{"aten::gru", 3},
    RecurrentRow{"aten::rnn_tanh"},
    RecurrentRow{"aten::rnn_relu"}};
// Places of arguments.
constexpr std::size_t kState = 1;
constexpr std::size_t kParams = 2;
constexpr std::size_t kHasBiases = 3;
constexpr std::size_t kLayers = 4;
constexpr std::size_t kBidirectional = 7;
constexpr std::size_t kBatchFirst = 8;
constexpr std::int64_t kMostLayers = 10'000;

const RecurrentRow* find_row(const c10::FunctionSchema& schema) {
  const auto* row = std::ranges::find(
      kRecurrent,
      std::string_view(schema.name()),
      &RecurrentRow::name);
  return row == kRecurrent.end() || schema.overload_name() != "input" ? nullptr
                                                                      : row;
}

void check_sizes(
    const at::Tensor& tensor,
    std::initializer_list<std::int64_t> sizes,
    std::string_view what) {
  const at::IntArrayRef expected(sizes);
  TORCH_CHECK(
      tensor.defined() && tensor.sizes() == expected,
      what,
      " of a recurrent layer: expected the sizes ",
      expected,
      ", got ",
      tensor.defined() ? tensor.sizes() : at::IntArrayRef());
}

// Autocast makes them one type.
void check_same_type(const at::Tensor& tensor, const at::Tensor& input) {
  const bool is_same = tensor.scalar_type() == input.scalar_type() ||
                       at::autocast::is_autocast_enabled(input.device().type());
  TORCH_CHECK(
      is_same && tensor.layout() == at::kStrided,
      "a recurrent layer of ",
      tensor.scalar_type(),
      " gets an input of ",
      input.scalar_type());
}

/// Checks the arguments of one call.
class RecurrentCall {
 public:
  RecurrentCall(const RecurrentRow& row, const torch::jit::Stack& stack)
      : row_(row),
        input_(stack[0].toTensor()),
        directions_(stack[kBidirectional].toBool() ? 2 : 1),
        layers_(stack[kLayers].toInt()),
        has_biases_(stack[kHasBiases].toBool()),
        batch_(stack[kBatchFirst].toBool() ? 0 : 1),
        params_(stack[kParams].toTensorVector()) {
    if (row.has_cells) {
      states_ = stack[kState].toTensorVector();
    } else {
      states_.push_back(stack[kState].toTensor());
    }
  }

  void check() const {
    TORCH_CHECK(
        input_.dim() == 3,
        "a recurrent layer takes 3 dimensions, got ",
        input_.dim());
    TORCH_CHECK(
        layers_ > 0 && layers_ <= kMostLayers,
        "a recurrent layer has at least one layer, got ",
        layers_);
    TORCH_CHECK(
        states_.size() == (row_.has_cells ? 2U : 1U),
        "a recurrent layer has another number of states, got ",
        states_.size());
    for (const at::Tensor& state : states_) {
      TORCH_CHECK(
          state.dim() == 3,
          "a state of a recurrent layer has 3 dimensions, got ",
          state.dim());
      check_same_type(state, input_);
    }
    const std::int64_t depth = layers_ * directions_;
    const std::int64_t batch = input_.size(batch_);
    check_sizes(states_.front(), {depth, batch, state_size()}, "the state");
    check_sizes(states_.back(), {depth, batch, hidden_size()}, "the cells");
    TORCH_CHECK(
        static_cast<std::int64_t>(params_.size()) == depth * per_direction(),
        "a recurrent layer has ",
        depth * per_direction(),
        " parameters, got ",
        params_.size());
    for (std::int64_t i = 0; i < depth; ++i) {
      check_direction(i);
    }
  }

 private:
  // Of what it gives, which a projection makes smaller.
  [[nodiscard]] std::int64_t state_size() const {
    return states_.front().size(2);
  }
  [[nodiscard]] std::int64_t hidden_size() const {
    return states_.back().size(2);
  }
  [[nodiscard]] bool has_projection() const {
    return state_size() != hidden_size();
  }
  [[nodiscard]] std::int64_t per_direction() const {
    return (has_biases_ ? 4 : 2) + (has_projection() ? 1 : 0);
  }

  void check_direction(std::int64_t index) const {
    const auto first = params_.begin() + index * per_direction();
    const std::int64_t inputs =
        index < directions_ ? input_.size(2) : state_size() * directions_;
    const std::int64_t rows = row_.gates * hidden_size();
    check_sizes(first[0], {rows, inputs}, "the weight of the input");
    check_sizes(first[1], {rows, state_size()}, "the weight of the state");
    if (has_biases_) {
      check_sizes(first[2], {rows}, "a bias");
      check_sizes(first[3], {rows}, "a bias");
    }
    if (has_projection()) {
      check_sizes(
          first[per_direction() - 1],
          {state_size(), hidden_size()},
          "the projection");
    }
    std::for_each(first, first + per_direction(), [this](const auto& weight) {
      check_same_type(weight, input_);
    });
  }

  const RecurrentRow& row_;
  at::Tensor input_;
  std::int64_t directions_ = 1;
  std::int64_t layers_ = 0;
  bool has_biases_ = true;
  std::int64_t batch_ = 0;
  std::vector<at::Tensor> params_ = {};
  /// One, or with the cells two.
  std::vector<at::Tensor> states_ = {};
};

} // namespace

bool is_recurrent(const c10::FunctionSchema& schema) {
  return find_row(schema) != nullptr;
}

void run_recurrent(const Step& step, Frame& frame) {
  push_inputs(step, frame);
  RecurrentCall(*find_row(step.op->schema()), frame.stack).check();
  call_operator(step, frame);
}

} // namespace lockstep::program
