// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/cpu_norm.h"

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/kernels/internal/norm_tiles.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

constexpr float kNoRelu = -std::numeric_limits<float>::infinity();
// Nothing is less than NaN.
constexpr float kNoMask = std::numeric_limits<float>::quiet_NaN();

// Numbers of a tensor as the loops take them.
template <class T>
const T* numbers(const Tensor& tensor) {
  return tensor.defined() ? static_cast<const T*>(tensor.const_data_ptr())
                          : nullptr;
}
template <class T>
T* new_numbers(const Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

template <class T>
const T* from(const T* tensor, const NormTile& tile) {
  return tensor == nullptr ? nullptr : tensor + tile.offset;
}

// Calls `pass` with a zero of the type whose loops fit.
template <class Pass>
void with_type(const Tensor& x, Pass pass) {
  if (x.scalar_type() == at::kFloat) {
    pass(float{});
  } else {
    pass(Bfloat16Bits{});
  }
}

Tensor float_tensor(at::IntArrayRef sizes) {
  return at::empty(sizes, at::TensorOptions().dtype(at::kFloat));
}

/// Two sums of every column of every tile.
struct TileSums {
  explicit TileSums(const NormTiles& tiles)
      : both(float_tensor({2, tiles.sum_count()})),
        first(both.mutable_data_ptr<float>()),
        second(first + tiles.sum_count()) {}

  Tensor both;
  float* first;
  float* second;
};

void move_running(
    const Tensor& running,
    std::span<const double> batch,
    double momentum,
    double factor) {
  if (!running.defined()) {
    return;
  }
  auto* const values = running.mutable_data_ptr<float>();
  for (std::size_t c = 0; c < batch.size(); ++c) {
    values[c] = static_cast<float>(
        momentum * batch[c] * factor + (1 - momentum) * values[c]);
  }
}

ChannelParameters channel_parameters(
    std::span<const double> means,
    std::span<const double> variances,
    const NormLayer& layer) {
  const auto channels = static_cast<std::int64_t>(means.size());
  ChannelParameters result{.rows = float_tensor({4, channels})};
  auto* const rows = result.rows.mutable_data_ptr<float>();
  const auto* const weight = numbers<float>(layer.weight);
  const auto* const bias = numbers<float>(layer.bias);
  for (std::int64_t c = 0; c < channels; ++c) {
    const double invstd = 1 / std::sqrt(variances[c] + layer.eps);
    const auto scale =
        static_cast<float>(invstd * (weight == nullptr ? 1 : weight[c]));
    rows[c] = static_cast<float>(means[c]);
    rows[channels + c] = static_cast<float>(invstd);
    rows[2 * channels + c] = scale;
    // Of the rounded scale: numbers near the mean lose nothing.
    rows[3 * channels + c] = static_cast<float>(
        (bias == nullptr ? 0 : bias[c]) - means[c] * double{scale});
  }
  return result;
}

std::vector<double> in_float64(const Tensor& tensor) {
  const auto* const values = tensor.const_data_ptr<float>();
  return {values, values + tensor.numel()};
}

ChannelParameters batch_parameters(
    const Tensor& x,
    const NormTiles& tiles,
    const NormLayer& layer) {
  const TileSums sums(tiles);
  with_type(x, [&]<class T>(T) {
    const T* const values = numbers<T>(x);
    tiles.for_each([&](const NormTile& tile) {
      norm_loops<T>().moments(
          tile.size,
          {.x = from(values, tile),
           .sums = sums.first + tile.sums_offset,
           .squares = sums.second + tile.sums_offset});
    });
  });
  const auto count = static_cast<double>(tiles.values());
  std::vector<double> means = tiles.totals(sums.first);
  for (double& mean : means) {
    mean /= count;
  }
  std::vector<double> variances = tiles.squares(sums.first, sums.second, means);
  for (double& variance : variances) {
    variance /= count;
  }
  move_running(layer.running_mean, means, layer.momentum, 1);
  move_running(
      layer.running_var,
      variances,
      layer.momentum,
      count / (count - 1));
  return channel_parameters(means, variances, layer);
}

Tensor normalised(
    const Tensor& x,
    const NormTiles& tiles,
    const ChannelParameters& parameters,
    const Tensor& addend,
    bool has_relu) {
  const Tensor y = new_like(x);
  const ColumnParameters scale(tiles, numbers<float>(parameters.scale()));
  const ColumnParameters shift(tiles, numbers<float>(parameters.shift()));
  with_type(x, [&]<class T>(T) {
    const T* const values = numbers<T>(x);
    const T* const added = numbers<T>(addend);
    T* const result = new_numbers<T>(y);
    tiles.for_each([&](const NormTile& tile) {
      norm_loops<T>().normalise(
          tile.size,
          {.x = from(values, tile),
           .addend = from(added, tile),
           .scale = scale.of(tile),
           .shift = shift.of(tile),
           .floor = has_relu ? 0 : kNoRelu,
           .y = result + tile.offset});
    });
  });
  return y;
}

/// Runs the two passes: sums over the batch, then the input's gradient.
template <class T>
class BackwardPasses {
  using Passed = typename NormLoops<T>::Passed;

 public:
  BackwardPasses(const NormGradientInputs& inputs, const NormTiles& tiles)
      : inputs_(inputs),
        tiles_(tiles),
        mean_(tiles, numbers<float>(inputs.parameters.mean())),
        scale_(tiles, numbers<float>(inputs.parameters.scale())),
        shift_(tiles, numbers<float>(inputs.parameters.shift())),
        grad_(numbers<T>(inputs.grad)),
        floor_(inputs.has_relu ? 0 : kNoMask) {}

  NormGradients run(bool wants_input) {
    const std::int64_t channels = tiles_.channels();
    NormGradients found{
        .of_weight = float_tensor({channels}),
        .of_bias = float_tensor({channels})};
    reduce(found);
    if (wants_input) {
      found.of_input = new_like(inputs_.x);
      input_gradient(found.of_input);
    }
    return found;
  }

 private:
  Passed passed_in(const NormTile& tile) const {
    return {
        .grad = from(grad_, tile),
        .x = from(numbers<T>(inputs_.x), tile),
        .scale = scale_.of(tile),
        .shift = shift_.of(tile),
        .floor = floor_};
  }

  void reduce(NormGradients& found) {
    const TileSums sums(tiles_);
    const T* const output = numbers<T>(inputs_.output);
    T* kept = nullptr;
    if (output != nullptr) {
      found.of_addend = new_like(inputs_.x);
      kept = new_numbers<T>(found.of_addend);
    }
    tiles_.for_each([&](const NormTile& tile) {
      norm_loops<T>().reduce(
          tile.size,
          {.passed = passed_in(tile),
           .mean = mean_.of(tile),
           .sums = sums.first + tile.sums_offset,
           .products = sums.second + tile.sums_offset,
           .output = from(output, tile),
           .kept = kept == nullptr ? nullptr : kept + tile.offset});
    });
    if (kept != nullptr) { // has passed the ReLU
      grad_ = kept;
      floor_ = kNoMask;
    }
    use(tiles_.totals(sums.first), tiles_.totals(sums.second), found);
  }

  // With g: what has passed the ReLU, n: numbers of a channel, d: distance from
  // the mean, s: invstd:
  //   bias: sum(g)    weight: s sum(g d)
  //   input: weight s (g - sum(g) / n - d s^2 sum(g d) / n)
  void use(
      std::span<const double> sums,
      std::span<const double> products,
      const NormGradients& found) {
    const std::int64_t channels = tiles_.channels();
    factors_ = float_tensor({3, channels});
    auto* const factors = factors_.mutable_data_ptr<float>();
    auto* const of_weight = found.of_weight.template mutable_data_ptr<float>();
    auto* const of_bias = found.of_bias.template mutable_data_ptr<float>();
    const auto* const weight = numbers<float>(inputs_.weight);
    const auto* const invstd = numbers<float>(inputs_.parameters.invstd());
    const auto count = static_cast<double>(tiles_.values());
    for (std::int64_t c = 0; c < channels; ++c) {
      const double s = invstd[c];
      const double by_grad = s * (weight == nullptr ? 1 : weight[c]);
      of_bias[c] = static_cast<float>(sums[c]);
      of_weight[c] = static_cast<float>(products[c] * s);
      factors[c] = static_cast<float>(by_grad);
      factors[channels + c] =
          static_cast<float>(-by_grad * s * s * products[c] / count);
      factors[2 * channels + c] =
          static_cast<float>(-by_grad * sums[c] / count);
    }
  }

  void input_gradient(const Tensor& result) const {
    const auto* const factors = factors_.const_data_ptr<float>();
    const auto factor = [&](std::int64_t row) {
      return ColumnParameters(tiles_, factors + row * tiles_.channels());
    };
    const ColumnParameters by_grad = factor(0);
    const ColumnParameters by_distance = factor(1);
    const ColumnParameters constant = factor(2);
    T* const values = new_numbers<T>(result);
    tiles_.for_each([&](const NormTile& tile) {
      norm_loops<T>().gradient(
          tile.size,
          {.passed = passed_in(tile),
           .mean = mean_.of(tile),
           .by_grad = by_grad.of(tile),
           .by_distance = by_distance.of(tile),
           .constant = constant.of(tile),
           .result = values + tile.offset});
    });
  }

  const NormGradientInputs& inputs_;
  const NormTiles& tiles_;
  ColumnParameters mean_;
  ColumnParameters scale_;
  ColumnParameters shift_;
  // What comes in, and later what has passed the ReLU.
  const T* grad_;
  float floor_;
  Tensor factors_;
};

class CpuNorm final : public NormAlgorithm {
 public:
  [[nodiscard]] bool takes(const Tensor& x) const override {
    return (x.scalar_type() == at::kFloat ||
            x.scalar_type() == at::kBFloat16) &&
           NormTiles::of(x).has_value();
  }
  [[nodiscard]] NormOutput by_batch(
      const Tensor& x,
      const NormLayer& layer,
      const Tensor& addend,
      bool has_relu) const override {
    const NormTiles tiles = tiles_of(x);
    const ChannelParameters found = batch_parameters(x, tiles, layer);
    return {normalised(x, tiles, found, addend, has_relu), found};
  }
  [[nodiscard]] NormOutput by_running(
      const Tensor& x,
      const NormLayer& layer,
      const Tensor& addend,
      bool has_relu) const override {
    const ChannelParameters found = channel_parameters(
        in_float64(layer.running_mean),
        in_float64(layer.running_var),
        layer);
    return {normalised(x, tiles_of(x), found, addend, has_relu), found};
  }
  [[nodiscard]] NormGradients gradients(
      const NormGradientInputs& inputs,
      bool wants_input) const override {
    NormGradients found;
    with_type(inputs.x, [&]<class T>(T) {
      found = BackwardPasses<T>(inputs, tiles_of(inputs.x)).run(wants_input);
    });
    return found;
  }

 private:
  // Of a batch that `takes` was asked about.
  static NormTiles tiles_of(const Tensor& x) {
    const auto tiles = NormTiles::of(x);
    LOCKSTEP_CHECK(tiles.has_value());
    return *tiles;
  }
};

} // namespace

const NormAlgorithm& cpu_norm() {
  static const CpuNorm algorithm;
  return algorithm;
}

} // namespace lockstep::kernels
