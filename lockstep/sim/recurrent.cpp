// SPDX-License-Identifier: BSD-3-Clause
//
// LSTM and GRU cells. On accelerators LibTorch calls cells that exist for CUDA
// only; here they are the formulas of its plain cells (torch.nn.LSTMCell and
// GRUCell in PyTorch's reference), and autograd goes through their parts.
#include <memory>
#include <optional>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "lockstep/sim/kernels.h"

namespace lockstep::sim {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

Tensor with_bias(const Tensor& gates, const OptionalTensor& bias) {
  return bias && bias->defined() ? gates + *bias : gates;
}

// Returns hy, cy and a workspace, which only a fused backward would need.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& cx,
    const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  const Tensor gates =
      with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias);
  const auto parts = gates.chunk(4, 1);
  const Tensor cy =
      parts[1].sigmoid() * cx + parts[0].sigmoid() * parts[2].tanh();
  return {parts[3].sigmoid() * cy.tanh(), cy, gates.detach()};
}

// Returns hy and a workspace.
std::tuple<Tensor, Tensor> gru_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& hx,
    const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  const auto in = with_bias(input_gates, input_bias).chunk(3, 1);
  const auto hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const Tensor reset = (in[0] + hidden[0]).sigmoid();
  const Tensor update = (in[1] + hidden[1]).sigmoid();
  const Tensor proposal = (in[2] + reset * hidden[2]).tanh();
  return {(hx - proposal) * update + proposal, proposal.detach()};
}

} // namespace

void register_recurrent(torch::Library& library) {
  library.impl("_thnn_fused_lstm_cell", &lstm_cell);
  library.impl("_thnn_fused_gru_cell", &gru_cell);
}

} // namespace lockstep::sim
