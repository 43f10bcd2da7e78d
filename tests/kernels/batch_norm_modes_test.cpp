// SPDX-License-Identifier: BSD-3-Clause
//
// Batch normalisation in every mode of a layer and of autograd.
#include <array>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/tensor/norm_relu.h"
#include "tests/kernels/installed_norms.h"

namespace lockstep::kernels {
namespace {

namespace nn = torch::nn;

at::Tensor through(nn::BatchNorm2d& layer, const at::Tensor& x, After after) {
  switch (after) {
    case After::kRelu:
      return batch_norm_relu(layer, x);
    case After::kAddRelu:
      return batch_norm_add_relu(layer, x, [&] { return x * 2; });
    default:
      return layer->forward(x);
  }
}

constexpr std::array kAll{After::kNothing, After::kRelu, After::kAddRelu};

// With create_graph the gradients are LibTorch's operations.
TEST(BatchNormModes, HasGradientsOfGradients) {
  for (const After after : kAll) {
    const auto second = [&] {
      torch::manual_seed(25);
      nn::BatchNorm2d layer(5);
      const at::Tensor x = at::randn({4, 5, 3, 3}).requires_grad_();
      const at::Tensor y = through(layer, x, after);
      const at::Tensor first =
          torch::autograd::grad({y.pow(3).sum()}, {x}, {}, true, true)[0];
      return torch::autograd::grad({first.pow(2).sum()}, {x})[0];
    };
    const at::Tensor theirs = second();
    const Ours installed;
    EXPECT_TRUE(at::allclose(second(), theirs, 1e-3, 1e-3));
  }
}

TEST(BatchNormModes, CountsAndRefusesAsLibTorch) {
  const Ours installed;
  for (const After after : kAll) {
    nn::BatchNorm2d layer(nn::BatchNormOptions(3).momentum(std::nullopt));
    for (int i = 0; i < 3; ++i) {
      through(layer, at::full({2, 3, 2, 2}, double{1} * i), after);
    }
    EXPECT_EQ(layer->num_batches_tracked.item<std::int64_t>(), 3);
    EXPECT_TRUE(at::allclose(layer->running_mean, at::ones({3})));
    try {
      through(layer, at::ones({1, 3, 1, 1}), after);
      ADD_FAILURE() << "one value per channel";
    } catch (const c10::Error& error) {
      EXPECT_NE(
          std::string(error.what())
              .find("Expected more than 1 value per channel when training, got "
                    "input size [1, 3, 1, 1]"),
          std::string::npos);
    }
    EXPECT_THROW(through(layer, at::ones({2, 4, 2, 2}), after), c10::Error);
    EXPECT_THROW(through(layer, at::ones({2, 3}), after), c10::Error);
    const at::Tensor none = at::ones({0, 3, 2, 2});
    EXPECT_EQ(through(layer, none, after).sizes(), none.sizes());
    // What an error left behind must not reach the next layer.
    nn::BatchNorm2d next(3);
    const at::Tensor y = next->forward(at::randn({4, 3, 2, 2}));
    EXPECT_LT(y.min().item<float>(), 0);
  }
}

// Without gradients and in inference mode, and what LibTorch's kernel computes.
TEST(BatchNormModes, KnowsAllModes) {
  torch::manual_seed(26);
  nn::BatchNorm2d layer(4);
  layer->running_mean.uniform_();
  const at::Tensor x = at::randn({3, 4, 5, 5});
  for (const After after : kAll) {
    for (const bool is_training : {false, true}) {
      layer->train(is_training);
      const auto results = [&] {
        std::vector<at::Tensor> found{through(layer, x, after)};
        const at::NoGradGuard no_grad;
        found.push_back(through(layer, x, after));
        found.push_back(
            through(layer, x.to(at::kDouble).to(at::kFloat), after));
        const c10::InferenceMode inference;
        found.push_back(through(layer, x.clone(), after));
        return found;
      };
      const auto theirs = results();
      const Ours installed;
      const auto ours = results();
      for (std::size_t i = 0; i < ours.size(); ++i) {
        EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-4, 1e-5)) << i;
      }
    }
  }
  layer->to(at::kDouble);
  const Ours installed;
  const auto input = x.to(at::kDouble).requires_grad_();
  through(layer, input, After::kRelu).sum().backward();
  EXPECT_EQ(input.grad().scalar_type(), at::kDouble);
}

TEST(BatchNormModes, IsOneNodeThatKeepsNoCopyBeforeTheRelu) {
  const Ours installed;
  nn::BatchNorm2d layer(4);
  const at::Tensor y = batch_norm_relu(layer, at::randn({3, 4, 5, 5}));
  EXPECT_EQ(y.grad_fn()->name().find("ReluBackward"), std::string::npos);
  EXPECT_NE(y.grad_fn()->name().find("BatchNormNode"), std::string::npos);
}

TEST(BatchNormModes, MayRunInSeveralThreadsAtOnce) {
  torch::manual_seed(27);
  const Ours installed;
  const at::Tensor x = at::randn({8, 6, 4, 4});
  const auto gradient = [&x] {
    nn::BatchNorm2d layer(6);
    const at::Tensor input = x.clone().requires_grad_();
    through(layer, input, After::kAddRelu).pow(2).sum().backward();
    return input.grad();
  };
  const at::Tensor expected = gradient();
  std::array<at::Tensor, 4> found;
  {
    std::vector<std::jthread> threads;
    for (at::Tensor& result : found) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          result = gradient();
        }
      });
    }
  }
  for (const at::Tensor& result : found) {
    EXPECT_TRUE(torch::equal(result, expected));
  }
}

// Ten steps of a small net: the losses lie over each other.
TEST(BatchNormModes, TrainsAsLibTorchs) {
  const auto losses = [](bool is_ours) {
    torch::manual_seed(28);
    if (is_ours) {
      install({.batch_norm = true});
    }
    nn::Conv2d conv(nn::Conv2dOptions(3, 16, 3).padding(1));
    nn::BatchNorm2d first(16);
    nn::BatchNorm2d second(16);
    nn::Linear last(16, 5);
    std::vector<at::Tensor> parameters;
    for (const auto& part :
         {conv->parameters(),
          first->parameters(),
          second->parameters(),
          last->parameters()}) {
      parameters.insert(parameters.end(), part.begin(), part.end());
    }
    torch::optim::SGD sgd(
        parameters,
        torch::optim::SGDOptions(0.1).momentum(0.9));
    const at::Tensor x = at::randn({32, 3, 9, 9});
    const at::Tensor targets = at::randint(5, {32}, at::kLong);
    std::vector<double> found;
    for (int i = 0; i < 10; ++i) {
      const at::Tensor maps = conv->forward(x);
      at::Tensor y = batch_norm_relu(first, maps);
      y = batch_norm_add_relu(second, y, [&] { return maps; });
      const at::Tensor loss =
          nn::functional::cross_entropy(last->forward(y.mean({2, 3})), targets);
      sgd.zero_grad();
      loss.backward();
      sgd.step();
      found.push_back(loss.item<double>());
    }
    uninstall();
    return found;
  };
  const auto theirs = losses(false);
  const auto ours = losses(true);
  EXPECT_LT(ours.back(), ours.front());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_NEAR(ours[i], theirs[i], 1e-3 * theirs[0]) << i;
  }
}

} // namespace
} // namespace lockstep::kernels
