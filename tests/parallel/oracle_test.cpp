// SPDX-License-Identifier: BSD-3-Clause
//
// Against Python: tests/oracle/parallel_by_hand.py does what nn.DataParallel
// does, one replica after the other; losses and weights must be bit-equal.
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/models/model.h"
#include "lockstep/parallel/data_parallel.h"
#include "tests/parallel/nets.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using test::ScratchDir;

struct Case {
  std::string net = {};
  std::int64_t replicas = 0;
  std::int64_t steps = 5;
  std::int64_t batch = 31;
  /// Height and width of an image.
  std::int64_t size = 8;
};

// A wrapped net of any type.
struct Wrapped {
  std::shared_ptr<torch::nn::Module> net = {};
  std::function<at::Tensor(const at::Tensor&)> forward = {};
};

template <class M>
Wrapped wrap(
    const std::shared_ptr<M>& net,
    const DataParallelOptions& options) {
  DataParallel model(net, options);
  return {net, [model](const at::Tensor& x) mutable {
            return model->forward(x);
          }};
}

Wrapped wrap(const Case& c) {
  const DataParallelOptions options{
      .devices = "cpu*" + std::to_string(c.replicas)};
  if (c.net == "small") {
    return wrap(test::conv_net().ptr(), options);
  }
  if (c.net == "dropout") {
    return wrap(test::mlp(0.5).ptr(), options);
  }
  return wrap(
      make_model(c.net, {.num_classes = 10, .in_channels = 1}),
      options);
}

template <class T>
at::Tensor read_raw(const std::string& path, at::ScalarType dtype) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  const auto count = static_cast<std::int64_t>(bytes.size() / sizeof(T));
  at::Tensor tensor = torch::empty({count}, dtype);
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

void load_flat(const torch::nn::Module& module, const at::Tensor& flat) {
  const torch::NoGradGuard no_grad;
  std::int64_t start = 0;
  for (const at::Tensor& t : test::state_of(module)) {
    t.copy_(flat.narrow(0, start, t.numel()).view(t.sizes()));
    start += t.numel();
  }
  ASSERT_EQ(start, flat.numel());
}

at::Tensor flat_state(const torch::nn::Module& module) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& t : test::state_of(module)) {
    parts.push_back(t.detach().reshape(-1).to(at::kFloat));
  }
  return torch::cat(parts);
}

class ByHand : public testing::TestWithParam<Case> {};

TEST_P(ByHand, LossesAndWeightsAreBitEqual) {
  const Case& c = GetParam();
  const ScratchDir dir;
  test::run_python(
      "parallel_by_hand.py",
      {dir.path(),
       c.net,
       std::to_string(c.replicas),
       std::to_string(c.steps),
       std::to_string(c.batch)});
  const auto images = read_raw<float>(dir / "images.f32", at::kFloat)
                          .view({c.steps, c.batch, 1, c.size, c.size});
  const auto targets = read_raw<std::int64_t>(dir / "targets.i64", at::kLong)
                           .view({c.steps, c.batch});
  const auto losses = read_raw<float>(dir / "losses.f32", at::kFloat);

  const auto [net, forward] = wrap(c);
  load_flat(*net, read_raw<float>(dir / "init.f32", at::kFloat));
  torch::optim::SGD optimizer(
      net->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::manual_seed(11);
  for (std::int64_t step = 0; step < c.steps; ++step) {
    optimizer.zero_grad();
    auto loss = torch::nn::functional::cross_entropy(
        forward(images[step]),
        targets[step]);
    loss.backward();
    optimizer.step();
    EXPECT_EQ(loss.item<float>(), losses[step].item<float>())
        << "step " << step;
  }
  const auto expected = read_raw<float>(dir / "final.f32", at::kFloat);
  EXPECT_TRUE(torch::equal(flat_state(*net), expected));
}

INSTANTIATE_TEST_SUITE_P(
    Parallel,
    ByHand,
    testing::Values(
        Case{"small", 2},
        Case{"small", 3},
        Case{"dropout", 2},
        Case{"dropout", 4},
        Case{"resnet18", 2, 2, 16, 28}),
    [](const auto& test) {
      return test.param.net + std::to_string(test.param.replicas);
    });

} // namespace
} // namespace lockstep
