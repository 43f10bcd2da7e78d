// SPDX-License-Identifier: BSD-3-Clause
//
// What a network is made of, layer by layer, as Python's torchinfo counts it.
//   ModelSummary summary = summarize(*net, torch::zeros({1, 3, 224, 224}));
//   std::cout << to_string(summary);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace lockstep {

/// One module of the tree.
struct LayerSummary {
  /// "layer1.0.conv1"; empty for the network itself.
  std::string name = {};
  /// "Conv2d".
  std::string type = {};
  /// How deep in the tree; 0 for the network itself.
  std::int64_t depth = 0;
  /// Of the first call; of the last operation in it for a module with children.
  /// Empty where no operation could be told to be its own.
  std::vector<std::int64_t> output_shape = {};
  /// Its own numbers, without those of its children.
  std::int64_t params = 0;
  std::int64_t trainable_params = 0;
  /// Multiplications with additions, over the whole batch and all calls.
  std::int64_t mult_adds = 0;
};

/// The network. Bytes are torchinfo's estimates.
struct ModelSummary {
  std::vector<std::int64_t> input_shape = {};
  std::vector<LayerSummary> layers = {};
  std::int64_t params = 0;
  std::int64_t trainable_params = 0;
  std::int64_t mult_adds = 0;
  std::int64_t input_bytes = 0;
  /// Outputs of layers with parameters, forward and backward.
  std::int64_t pass_bytes = 0;
  std::int64_t param_bytes = 0;
};

/// Runs `forward` once, in evaluation mode and without gradients, and observes
/// the operations of this thread: an operation belongs to the module whose
/// parameters it takes, else to the next one that is called like it
/// ("MaxPool2d" for "max_pool2d"). The modes of all modules are as before
/// afterwards. Errors: throws what `forward` throws.
ModelSummary summarize(
    torch::nn::Module& module,
    const at::Tensor& input,
    const std::function<void()>& forward);

/// The same for anything with `forward(Tensor)`.
template <class Net>
ModelSummary summarize(Net& net, const at::Tensor& input) {
  return summarize(net, input, [&] { static_cast<void>(net.forward(input)); });
}

/// A table and its totals.
std::string to_string(const ModelSummary& summary);

} // namespace lockstep
