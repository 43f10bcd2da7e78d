// SPDX-License-Identifier: BSD-3-Clause
//
// One row for each module of torch::nn, and for each way in which one holds
// tensors that it was given.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <torch/torch.h>

namespace lockstep::test {

using Tensors = std::vector<torch::Tensor>;

/// What one device's result is to be compared with.
enum class Against {
  /// One device and the whole batch.
  kWhole,
  /// One device and each shard: statistics and frequencies of a batch.
  kShards,
  /// Random numbers; what holds for each: the gradient times the input is the
  /// output. In evaluation mode one device.
  kScaled,
  /// The same, and no evaluation mode without random numbers.
  kScaledAlways,
  /// Random numbers: no more than two values in the gradient. In evaluation
  /// mode one device.
  kTwoValues,
};

struct StockTraits {
  /// "frozen": what the row has besides the class.
  std::string variant = {};
  std::int64_t dim = 0;
  Against against = Against::kWhole;
  /// The first ones, which take gradients.
  std::size_t with_gradient = 1;
  /// Simulated devices have dense tensors only.
  bool is_cpu_only = false;
};

struct StockRow {
  /// Equal modules: what they are given is made anew.
  std::function<std::shared_ptr<torch::nn::Module>()> make;
  std::function<Tensors(torch::nn::Module&, const Tensors&)> call;
  Tensors inputs = {};
  StockTraits traits = {};
  /// The class has a member `options`.
  bool has_options = false;
};
using StockRows = std::vector<StockRow>;

inline Tensors flat(const torch::Tensor& t) {
  return {t};
}
inline Tensors flat(const std::tuple<torch::Tensor, torch::Tensor>& t) {
  return {std::get<0>(t), std::get<1>(t)};
}
inline Tensors flat(
    const std::tuple<torch::Tensor, std::tuple<torch::Tensor, torch::Tensor>>&
        t) {
  const auto& [h, c] = std::get<1>(t);
  return {std::get<0>(t), h, c};
}
inline Tensors flat(const torch::nn::ASMoutput& t) {
  return {t.output};
}

/// Adds a row of a module with `N` inputs that has a forward.
template <class Holder, std::size_t N = 1, class Make>
void add(StockRows& rows, Make make, Tensors inputs, StockTraits traits = {}) {
  rows.push_back(
      {.make = [make] {
    return Holder(make()).ptr(); },
       .call =
           [](torch::nn::Module& module, const Tensors& in) {
    auto& typed = dynamic_cast<typename Holder::ContainedType&>(module);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return flat(typed.forward(in.at(I)...));
    }(std::make_index_sequence<N>());
           },
       .inputs = std::move(inputs),
       .traits = std::move(traits),
       .has_options =
           requires(typename Holder::ContainedType& module) {
             module.options;
}
} // namespace lockstep::test
);
}

/// [sizes] of a normal distribution.
inline torch::Tensor x(torch::IntArrayRef sizes) {
  return torch::randn(sizes);
}
/// Integers in [0, end).
inline torch::Tensor whole(torch::IntArrayRef sizes, std::int64_t end) {
  return torch::randint(end, sizes);
}

void add_stock_layers(StockRows& rows);
void add_stock_networks(StockRows& rows);
void add_stock_losses(StockRows& rows);

} // namespace lockstep::test
