// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/weight_gradient.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/convolution_backward_native.h>
#include <ATen/ops/empty_like.h>

#include "lockstep/kernels/weight_products.h"

namespace lockstep::kernels {
namespace {

using at::IntArrayRef;
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
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight,
    const KernelSteps& steps,
    const std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>&
        libtorchs_way) {
  const auto of_weight = [&](const Tensor& grads, const Tensor& pixels) {
    return libtorchs_way(grads, pixels, weight);
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
        .copy_(libtorchs_way(
            grad_output.narrow(1, begin, channels),
            input,
            weight.narrow(0, begin, channels)));
  }
  return whole;
}

using Gradients = std::tuple<Tensor, Tensor, Tensor>;

// Of the input, the weight and the bias.
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
  const auto compute = [&](const Tensor& grad_part,
                           const Tensor& input_part,
                           const Tensor& weight_part,
                           std::array<bool, 3> outputs) {
    return at::native::convolution_backward(
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
  };
  const auto [of_input, of_weight, of_bias] = wanted;
  // One number for both directions is allowed, and rare.
  const bool is_simple = of_weight && !of_bias && !transposed && groups == 1 &&
                         stride.size() == 2 && padding.size() == 2 &&
                         dilation.size() == 2;
  if (!is_simple || !is_ours(grad_output, input, weight)) {
    return compute(grad_output, input, weight, wanted);
  }
  Gradients result;
  if (of_input) {
    result = compute(grad_output, input, weight, {true, false, false});
  }
  std::get<1>(result) = weight_gradient(
      grad_output,
      input,
      weight,
      {.stride = stride, .padding = padding, .dilation = dilation},
      [&](const Tensor& grads, const Tensor& pixels, const Tensor& part) {
        return std::get<1>(compute(grads, pixels, part, {false, true, false}));
      });
  return result;
}

} // namespace

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
  // With more threads oneDNN may also cut the batch, by the number of channels:
  // other sums. Without oneDNN the gradient is one matrix product.
  const bool is_one_thread = at::get_num_threads() == 1;
  return is_one_thread && at::globalContext().userEnabledMkldnn() ? kPieces : 1;
}

void add_weight_gradient(torch::Library& library) {
  library.impl("convolution_backward", &convolution_backward);
}

} // namespace lockstep::kernels
