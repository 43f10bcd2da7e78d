// SPDX-License-Identifier: BSD-3-Clause
//
// Batch norms on shapes that a generator with a fixed seed draws, for ours
// beside LibTorch's operations and beside float64.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>

#include <torch/torch.h>

#include "lockstep/tensor/norm_relu.h"
#include "tests/kernels/installed_norms.h"

namespace lockstep::kernels {

/// A layer, its input and the gradient that reaches it.
struct NormCase {
  explicit NormCase(unsigned seed, c10::Device place = c10::Device(at::kCPU))
      : engine(seed), device(place) {
    channels = from(1, 40);
    if (device.is_cuda()) { // what fits there; the tests' fall-backs do not
      channels *= 8;
    }
    sizes = {from(1, 40), channels};
    const std::int64_t maps = from(0, 3);
    for (std::int64_t i = 0; i < 2; ++i) {
      sizes.push_back(maps == 0 ? 1 : from(2, maps == 3 ? 17 : 8));
    }
    if (sizes[0] * sizes[2] * sizes[3] == 1) {
      sizes[0] = 2;
    }
    type = from(0, 3) == 0 ? at::kBFloat16 : at::kFloat;
    after = static_cast<After>(from(0, 2));
    options = torch::nn::BatchNormOptions(channels)
                  .affine(from(0, 4) > 0)
                  .track_running_stats(from(0, 4) > 0);
    if (from(0, 3) == 0) {
      options.momentum(std::nullopt);
    }
    is_training = from(0, 3) > 0;
    const double mean = from(0, 2);
    input = in_some_layout(at::randn(sizes) * 1.5 + mean);
    addend = in_some_layout(at::randn(sizes));
    grad = in_some_layout(at::randn(sizes));
    weight = at::randn({channels});
    bias = at::randn({channels});
  }

  std::int64_t from(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  }

  at::Tensor in_some_layout(const at::Tensor& values) {
    const at::Tensor tensor = values.to(type);
    switch (from(0, 4)) {
      case 0:
      case 1:
        return tensor.contiguous(at::MemoryFormat::ChannelsLast);
      case 2: // a part of a larger one
        return at::cat({tensor, tensor}, 1).narrow(1, 0, channels);
      default:
        return tensor;
    }
  }

  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << type << " " << sizes << ", strides " << input.strides()
        << ", training " << is_training << ", after " << static_cast<int>(after)
        << ", affine " << options.affine() << ", tracks "
        << options.track_running_stats();
    return out.str();
  }

  /// As `type` on the device, as float64 on the CPU; given on the CPU.
  /// Output; gradients of input, addend, weight and bias; running mean and
  /// variance. Undefined where there is none.
  [[nodiscard]] std::array<at::Tensor, 7> results(at::ScalarType as) const {
    torch::nn::BatchNorm2d layer(options);
    if (options.affine()) {
      layer->weight.detach().copy_(weight);
      layer->bias.detach().copy_(bias);
    }
    const c10::Device place =
        as == at::kDouble ? c10::Device(at::kCPU) : device;
    if (as == at::kDouble) {
      layer->to(as);
    }
    layer->to(place);
    layer->train(is_training);
    const at::Tensor x = input.to(place, as).detach().requires_grad_();
    const at::Tensor added = addend.to(place, as).detach().requires_grad_();
    const at::Tensor y =
        after == After::kNothing ? layer->forward(x)
        : after == After::kRelu
            ? batch_norm_relu(layer, x)
            : batch_norm_add_relu(layer, x, [&] { return added; });
    y.backward(grad.to(place, as));
    const auto on_cpu = [](const at::Tensor& tensor) {
      return tensor.defined() ? tensor.cpu() : tensor;
    };
    const auto gradient = [&](const at::Tensor& tensor) {
      return tensor.defined() ? on_cpu(tensor.grad()) : tensor;
    };
    return {
        on_cpu(y.detach()),
        on_cpu(x.grad()),
        on_cpu(added.grad()),
        gradient(layer->weight),
        gradient(layer->bias),
        on_cpu(layer->running_mean),
        on_cpu(layer->running_var)};
  }

  std::mt19937 engine;
  c10::Device device;
  std::int64_t channels = 0;
  std::vector<std::int64_t> sizes;
  at::ScalarType type = at::kFloat;
  After after = After::kNothing;
  torch::nn::BatchNormOptions options{1};
  bool is_training = true;
  at::Tensor input;
  at::Tensor addend;
  at::Tensor grad;
  at::Tensor weight;
  at::Tensor bias;
};

// Relative to the size of the values; of sums, relative to what is usual for so
// many numbers: one that is 0 by luck says nothing. `index`: of the results.
inline double relative_error(
    const NormCase& c,
    std::size_t index,
    const at::Tensor& found,
    const at::Tensor& exact) {
  const auto values = static_cast<double>(c.sizes[0] * c.sizes[2] * c.sizes[3]);
  const double usual = index == 3 || index == 4 ? std::sqrt(values)
                       : index == 5             ? 0.1
                                                : 1e-30;
  const double size = std::max(
      exact.norm().item<double>(),
      usual * std::sqrt(static_cast<double>(c.channels)));
  return (found.to(at::kDouble) - exact).norm().item<double>() / size;
}

} // namespace lockstep::kernels
