// SPDX-License-Identifier: BSD-3-Clause
//
// TorchScript differentiates what it runs by itself: it calls operators'
// backward operators with every result of the forward ones.
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/ops/_batch_norm_impl_index.h>
#include <ATen/ops/_batch_norm_impl_index_backward.h>
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include "lockstep/kernels/install.h"
#include "tests/kernels/installed_norms.h"

namespace lockstep::kernels {
namespace {

// The convolution and the norms of a net, as torch.jit.script writes them.
torch::jit::Module scripted_net() {
  torch::jit::Module net("net");
  net.register_attribute("training", c10::BoolType::get(), true);
  const auto parameter = [&net](const char* name, const at::Tensor& value) {
    net.register_parameter(name, value, /*is_buffer=*/false);
  };
  torch::manual_seed(3);
  parameter("conv", at::randn({64, 8, 3, 3}).mul_(0.1));
  parameter("next", at::randn({64, 64, 3, 3}).mul_(0.1));
  parameter("weight", at::rand({64}) + 0.5);
  parameter("bias", at::randn({64}));
  net.register_buffer("mean", at::zeros({64}));
  net.register_buffer("var", at::ones({64}));
  net.define(R"(
    def forward(self, x):
        x = torch.conv2d(x, self.conv, None, [2, 2], [1, 1])
        x = torch.batch_norm(x, self.weight, self.bias, self.mean, self.var,
                             self.training, 0.1, 1e-5, True)
        x = torch.conv2d(torch.relu(x), self.next, None, [2, 2], [1, 1])
        return torch.relu(torch.batch_norm(x, None, None, None, None,
                                           True, 0.1, 1e-5, True))
  )");
  return net;
}

// What four steps leave, in one mode. From the third step on gradients are
// TorchScript's: it looks at two first.
std::vector<at::Tensor> after_four_steps(
    const InstallOptions& options,
    bool is_training) {
  install(options);
  torch::jit::Module net = scripted_net();
  net.train(is_training);
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : net.parameters()) {
    parameter.set_requires_grad(true);
    parameters.push_back(parameter);
  }
  torch::optim::SGD sgd(parameters, torch::optim::SGDOptions(0.05));
  torch::manual_seed(4);
  for (int step = 0; step < 4; ++step) {
    const at::Tensor x = at::randn({16, 8, 4, 4});
    const at::Tensor loss = net.forward({x}).toTensor().pow(3).mean();
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    parameters.push_back(loss.detach());
  }
  for (const at::Tensor& buffer : net.buffers()) {
    parameters.push_back(buffer);
  }
  uninstall();
  return parameters;
}

TEST(TorchScript, TrainsWithOurKernelsAsWithLibTorchs) {
  for (const bool is_training : {true, false}) {
    const auto theirs = after_four_steps({}, is_training);
    for (const InstallOptions& options :
         {InstallOptions{.convolution = true},
          InstallOptions{.batch_norm = true},
          InstallOptions{.convolution = true, .batch_norm = true}}) {
      const auto ours = after_four_steps(options, is_training);
      ASSERT_EQ(ours.size(), theirs.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-3, 1e-4))
            << i << " with the norms " << options.batch_norm
            << ", the convolutions " << options.convolution << ", training "
            << is_training;
      }
    }
  }
}

struct NormArguments {
  bool is_training = false;
  bool is_affine = false;
  bool has_running = false;
  at::ScalarType type = at::kFloat;
};

using Results =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, std::int64_t>;

std::optional<at::Tensor> with(bool has, const at::Tensor& tensor) {
  return has ? std::optional(tensor) : std::nullopt;
}

Results forward(const NormArguments& of, const at::Tensor& x) {
  return at::_batch_norm_impl_index(
      x,
      with(of.is_affine, at::linspace(0.5, 2, 5)),
      with(of.is_affine, at::linspace(-1, 1, 5)),
      with(of.has_running, at::linspace(-1, 0, 5)),
      with(of.has_running, at::linspace(1, 2, 5)),
      of.is_training,
      0.1,
      1e-5,
      true);
}

// The gradient of the input.
at::Tensor
backward(const NormArguments& of, const at::Tensor& x, const Results& results) {
  return std::get<0>(at::_batch_norm_impl_index_backward(
      std::get<4>(results),
      x,
      x.cos(),
      with(of.is_affine, at::linspace(0.5, 2, 5)),
      with(of.has_running, at::linspace(-1, 0, 5)),
      with(of.has_running, at::linspace(1, 2, 5)),
      std::get<1>(results),
      std::get<2>(results),
      of.is_training,
      1e-5,
      {true, of.is_affine, of.is_affine},
      std::get<3>(results)));
}

void expect_alike(const NormArguments& of) {
  torch::manual_seed(5);
  const at::Tensor x = at::randn({4, 5, 3, 3}).to(of.type);
  const Results theirs = forward(of, x);
  const at::Tensor their_gradient = backward(of, x, theirs);
  const Ours installed;
  const Results ours = forward(of, x);
  const double precision = of.type == at::kFloat ? 1e-4 : 2e-2;
  EXPECT_TRUE(at::allclose(
      backward(of, x, ours),
      their_gradient,
      precision,
      precision));
  const auto is_like = [](const at::Tensor& a, const at::Tensor& b) {
    return a.defined() && a.sizes() == b.sizes() &&
           at::allclose(a.to(at::kFloat), b.to(at::kFloat), 1e-2, 1e-2);
  };
  EXPECT_TRUE(is_like(std::get<1>(ours), std::get<1>(theirs)));
  EXPECT_TRUE(is_like(std::get<2>(ours), std::get<2>(theirs)));
  EXPECT_TRUE(is_like(std::get<3>(ours), std::get<3>(theirs)));
  EXPECT_EQ(std::get<4>(ours), std::get<4>(theirs));
}

TEST(TorchScript, FindsEveryResultOfANorm) {
  for (const bool is_training : {true, false}) {
    for (const bool is_affine : {true, false}) {
      for (const bool has_running : {true, false}) {
        for (const auto type : {at::kFloat, at::kBFloat16}) {
          if (!is_training && !has_running) {
            continue; // no statistics at all
          }
          SCOPED_TRACE(
              testing::Message()
              << is_training << is_affine << has_running << type);
          expect_alike({is_training, is_affine, has_running, type});
        }
      }
    }
  }
}

} // namespace
} // namespace lockstep::kernels
