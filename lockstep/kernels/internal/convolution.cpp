// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/convolution.h"

#include <array>
#include <atomic>

#include <ATen/ops/convolution_backward_native.h>
#include <ATen/ops/convolution_native.h>
#include <ATen/ops/sum_cpu_dispatch.h>
#include <ATen/record_function.h>

#include "lockstep/kernels/internal/convolution_algorithms.h"
#include "lockstep/kernels/internal/convolution_tensors.h"
#include "lockstep/kernels/internal/weight_gradient.h"

namespace lockstep::kernels {
namespace {

using at::IntArrayRef;
using at::Tensor;

std::atomic<bool> products_are_used{false};

// Undefined if LibTorch's kernel is better.
Tensor forward(
    const Tensor& input,
    const Tensor& weight,
    const Tensor& bias,
    const KernelSteps& steps) {
  for (const auto& [name, of] : kConvolutionAlgorithms) {
    const auto algorithm = of(input, weight, steps);
    if (algorithm && algorithm->is_better(Pass::kForward) &&
        is_bias_of(weight, bias)) {
      RECORD_FUNCTION(name, c10::ArrayRef<const c10::IValue>());
      return algorithm->forward(bias);
    }
  }
  return {};
}

// Those that are wanted and sooner computed than by LibTorch's kernel.
Gradients gradients(const ConvolutionInputs& from, std::array<bool, 3> wanted) {
  Gradients found;
  auto& [of_input, of_weight, of_bias] = found;
  for (const auto& [name, of] : kConvolutionAlgorithms) {
    const auto algorithm = of(from.input, from.weight, from.steps);
    if (!algorithm || !algorithm->takes_gradient(from.grad_output)) {
      continue;
    }
    if (wanted[0] && !of_input.defined() &&
        algorithm->is_better(Pass::kInputGradient)) {
      RECORD_FUNCTION(name, c10::ArrayRef<const c10::IValue>());
      of_input = algorithm->input_gradient(from.grad_output);
    }
    if (wanted[1] && !of_weight.defined() &&
        algorithm->is_better(Pass::kWeightGradient)) {
      RECORD_FUNCTION(name, c10::ArrayRef<const c10::IValue>());
      of_weight = algorithm->weight_gradient(from.grad_output);
      if (wanted[2]) { // which LibTorch's kernel computes with the weight's
        of_bias = at::cpu::sum(from.grad_output, IntArrayRef({0, 2, 3}));
      }
    }
  }
  return found;
}

// NOLINTNEXTLINE(readability-function-size): LibTorch's schema
Tensor convolution(
    const Tensor& input,
    const Tensor& weight,
    const std::optional<Tensor>& bias,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool transposed,
    IntArrayRef output_padding,
    std::int64_t groups) {
  if (products_are_used && !transposed && groups == 1) {
    Tensor output = forward(
        input,
        weight,
        bias.value_or(Tensor()),
        {.stride = stride, .padding = padding, .dilation = dilation});
    if (output.defined()) {
      return output;
    }
  }
  return at::native::convolution(
      input,
      weight,
      bias,
      stride,
      padding,
      dilation,
      transposed,
      output_padding,
      groups);
}

// NOLINTNEXTLINE(readability-function-size): LibTorch's schema
Gradients convolution_backward(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight,
    at::OptionalIntArrayRef bias_sizes,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool transposed,
    IntArrayRef output_padding,
    std::int64_t groups,
    std::array<bool, 3> wanted) {
  const KernelSteps steps{
      .stride = stride,
      .padding = padding,
      .dilation = dilation};
  const auto libtorch_kernel = [&](const Tensor& grad_part,
                                   const Tensor& input_part,
                                   const Tensor& weight_part,
                                   std::array<bool, 3> outputs) {
    Gradients found = at::native::convolution_backward(
        grad_part,
        input_part,
        weight_part,
        bias_sizes,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        outputs);
    if (!transposed) {
      clear_dead_taps(std::get<1>(found), input_part, steps);
    }
    return found;
  };
  if (transposed || groups != 1) {
    return libtorch_kernel(grad_output, input, weight, wanted);
  }
  const ConvolutionInputs inputs{
      .grad_output = grad_output,
      .input = input,
      .weight = weight,
      .steps = steps};
  Gradients found;
  if (products_are_used) {
    found = gradients(inputs, wanted);
  }
  auto& [of_input, of_weight, of_bias] = found;
  wanted = {
      wanted[0] && !of_input.defined(),
      wanted[1] && !of_weight.defined(),
      wanted[2] && !of_bias.defined()};
  if (wanted[0] || wanted[1] || wanted[2]) {
    const auto [i, w, b] = same_bits_gradients(inputs, wanted, libtorch_kernel);
    of_input = wanted[0] ? i : of_input;
    of_weight = wanted[1] ? w : of_weight;
    of_bias = wanted[2] ? b : of_bias;
  }
  return found;
}

} // namespace

void add_convolutions(torch::Library& library) {
  library.impl("convolution", &convolution);
  library.impl("convolution_backward", &convolution_backward);
}

void use_products(bool are_used) {
  products_are_used = are_used;
}

} // namespace lockstep::kernels
