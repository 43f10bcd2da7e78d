// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/weight_gradient.h"

#include <unistd.h>

#include <algorithm>
#include <tuple>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include "lockstep/kernels/internal/weight_products.h"
#include "lockstep/tensor/internal/cpu_features.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

constexpr std::int64_t kPieces = 4;
// oneDNN's kernels take output channels in blocks of up to 64.
constexpr std::int64_t kChannelsPerPiece = 64;
// Above this the arithmetic of an image outweighs the pass over the gradient.
constexpr std::int64_t kMaxPositions = 4;
// Below this a piece costs more than its cache misses.
constexpr std::int64_t kMinBatch = 32;

std::size_t l2_cache_bytes() {
  constexpr long kUsual = 1L << 20;
  long found = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
  found = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
  return static_cast<std::size_t>(std::max(found, kUsual));
}

bool is_plain(const Tensor& tensor) {
  return tensor.dim() == 4 && tensor.layout() == at::kStrided &&
         tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
}

bool is_ours(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight) {
  return is_plain(grad_output) && is_plain(input) && is_plain(weight) &&
         at::globalContext().userEnabledMkldnn() &&
         (weight_products_fit(grad_output, input, weight) ||
          weight_gradient_pieces(grad_output, input, weight) > 1);
}

Tensor weight_gradient(
    const ConvolutionInputs& of,
    const GradientsFunction& libtorch_kernel) {
  const auto& [grad_output, input, weight, steps] = of;
  const auto of_weight = [&](const Tensor& grads, const Tensor& pixels) {
    return std::get<1>(
        libtorch_kernel(grads, pixels, of.weight, {false, true, false}));
  };
  if (weight_products_fit(grad_output, input, weight) &&
      weight_products_are_exact(grad_output, input, weight, steps, of_weight)) {
    return weight_products(grad_output, input, weight, steps);
  }
  const std::int64_t pieces =
      weight_gradient_pieces(grad_output, input, weight);
  if (pieces == 1) {
    return of_weight(grad_output, input);
  }
  Tensor whole = at::empty_like(weight);
  const std::int64_t channels = weight.size(0) / pieces;
  for (std::int64_t begin = 0; begin < weight.size(0); begin += channels) {
    whole.narrow(0, begin, channels)
        .copy_(std::get<1>(libtorch_kernel(
            grad_output.narrow(1, begin, channels),
            input,
            weight.narrow(0, begin, channels),
            {false, true, false})));
  }
  return whole;
}

} // namespace

void clear_dead_taps(
    const Tensor& gradient,
    const Tensor& input,
    const KernelSteps& steps) {
  if (!gradient.defined() || gradient.scalar_type() != at::kBFloat16) {
    return;
  }
  for (std::int64_t i = 2; i < gradient.dim(); ++i) {
    const TapLine line(
        input.size(i),
        gradient.size(i),
        steps,
        static_cast<std::size_t>(i - 2));
    for (const std::int64_t tap : line.dead_taps()) {
      gradient.select(i, tap).zero_();
    }
  }
}

std::int64_t weight_gradient_pieces(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight) {
  static const std::size_t l2_bytes = l2_cache_bytes();
  if (!is_plain(grad_output) || !is_plain(input) || !is_plain(weight) ||
      weight.nbytes() <= l2_bytes ||
      weight.size(0) % (kPieces * kChannelsPerPiece) != 0 ||
      grad_output.size(2) * grad_output.size(3) > kMaxPositions ||
      grad_output.size(0) < kMinBatch) {
    return 1;
  }
  // With more threads, and with narrower vectors than AVX-512's, oneDNN may
  // also cut the batch, by the number of channels: other sums. Without oneDNN
  // the gradient is one matrix product.
  const bool is_cut_alike =
      at::get_num_threads() == 1 && widest_vectors() == VectorWidth::kAvx512;
  return is_cut_alike && at::globalContext().userEnabledMkldnn() ? kPieces : 1;
}

Gradients same_bits_gradients(
    const ConvolutionInputs& of,
    std::array<bool, 3> wanted,
    const GradientsFunction& libtorch_kernel) {
  const auto [of_input, of_weight, of_bias] = wanted;
  // One number for both directions is allowed, and rare.
  const bool is_simple = of_weight && !of_bias && of.steps.stride.size() == 2 &&
                         of.steps.padding.size() == 2 &&
                         of.steps.dilation.size() == 2;
  if (!is_simple || !is_ours(of.grad_output, of.input, of.weight)) {
    return libtorch_kernel(of.grad_output, of.input, of.weight, wanted);
  }
  Gradients result;
  if (of_input) {
    result = libtorch_kernel(
        of.grad_output,
        of.input,
        of.weight,
        {true, false, false});
  }
  std::get<1>(result) = weight_gradient(of, libtorch_kernel);
  return result;
}

} // namespace lockstep::kernels
