// SPDX-License-Identifier: BSD-3-Clause
//
// Random nets and batch sizes on 2, 3, 4 and 8 replicas, against the same
// computation by hand: a copy of the net for each chunk, one after the other,
// gradients added in the order of the devices. Every bit must agree: outputs,
// gradients of parameters and inputs, statistics of BatchNorm.
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::same_bits;

// For each kind, number of replicas, with and without dropout: 800 in all.
constexpr int kNets = 50;

// Draws the shape of one case.
class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  /// Both ends included.
  std::int64_t roll(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  bool one_in(std::int64_t n) {
    return roll(1, n) == 1;
  }

 private:
  std::mt19937 engine_;
};

struct Case {
  nn::Sequential net;
  at::Tensor images;
};

void push_activation(nn::Sequential& net, Dice& dice, bool has_dropout) {
  switch (dice.roll(0, 3)) {
    case 0:
      net->push_back(nn::ReLU());
      break;
    case 1:
      net->push_back(nn::Tanh());
      break;
    case 2:
      if (has_dropout) {
        net->push_back(nn::Dropout(0.3));
      }
      break;
    default:
      break;
  }
}

// Convolutions with or without BatchNorm, then one or two linear layers; some
// parameters frozen, inputs with and without gradient.
Case random_case(unsigned seed, bool has_dropout) {
  Dice dice(seed);
  torch::manual_seed(seed);
  Case made;
  const std::int64_t rows = dice.roll(1, 17);
  const std::int64_t size = dice.roll(3, 6);
  std::int64_t channels = dice.roll(1, 3);
  made.images = torch::randn({rows, channels, size, size});
  if (dice.one_in(2)) {
    made.images.set_requires_grad(true);
  }
  for (std::int64_t i = dice.roll(0, 2); i > 0; --i) {
    const std::int64_t out = dice.roll(1, 6);
    made.net->push_back(nn::Conv2d(
        nn::Conv2dOptions(channels, out, 3).padding(1).bias(dice.one_in(2))));
    channels = out;
    if (dice.one_in(2)) {
      made.net->push_back(nn::BatchNorm2d(channels));
    }
    push_activation(made.net, dice, has_dropout);
  }
  made.net->push_back(nn::Flatten());
  std::int64_t width = channels * size * size;
  for (std::int64_t i = dice.roll(1, 2); i > 0; --i) {
    const std::int64_t out = dice.roll(1, 9);
    made.net->push_back(nn::Linear(width, out));
    width = out;
    push_activation(made.net, dice, has_dropout);
  }
  const auto parameters = made.net->parameters();
  for (std::size_t i = 1; i < parameters.size(); ++i) {
    if (dice.one_in(6)) {
      parameters[i].set_requires_grad(false);
    }
  }
  return made;
}

// What one training pass leaves behind.
struct Outcome {
  at::Tensor output = {};
  std::vector<at::Tensor> gradients = {};
  at::Tensor input_gradient = {};
  std::vector<at::Tensor> buffers = {};
};

at::Tensor loss_of(const at::Tensor& output) {
  const auto weights = torch::linspace(-1, 1, output.numel());
  return (output * weights.view(output.sizes()).to(output.device())).sum();
}

constexpr unsigned kDropoutSeed = 77;

Outcome by_hand(Case& c, const std::string& kind, std::int64_t replicas) {
  // On devices chunks and gradients arrive as copies, at new addresses, which
  // matters for the last bit. Via float64 they do here, too.
  const auto moved = [&kind](const at::Tensor& tensor) {
    return kind == "cpu" ? tensor
                         : tensor.to(torch::kFloat64).to(torch::kFloat32);
  };
  std::vector<std::shared_ptr<nn::SequentialImpl>> nets;
  std::vector<at::Tensor> outputs;
  torch::manual_seed(kDropoutSeed);
  // Note [Replica streams]: drawn at the first random operation of a pass. A
  // simulated device draws what the CPU draws with the process's seed.
  const auto drawn = torch::randint(1LL << 31, {}, torch::kLong);
  for (const at::Tensor& chunk : c.images.chunk(replicas)) {
    const auto index = static_cast<std::int64_t>(nets.size());
    nets.push_back(
        std::dynamic_pointer_cast<nn::SequentialImpl>(c.net->clone()));
    const auto from = c.net->parameters();
    for (std::size_t i = 0; i < from.size(); ++i) {
      nets.back()->parameters()[i].set_requires_grad(from[i].requires_grad());
    }
    torch::manual_seed(
        kind == "cpu"
            ? static_cast<std::uint64_t>(drawn.item<std::int64_t>() + index)
            : kDropoutSeed);
    outputs.push_back(moved(nets.back()->forward(moved(chunk))));
  }
  Outcome made{.output = torch::cat(outputs)};
  loss_of(made.output).backward();
  for (std::size_t p = 0; p < c.net->parameters().size(); ++p) {
    at::Tensor sum = nets.front()->parameters()[p].grad();
    for (std::size_t r = 1; r < nets.size() && sum.defined(); ++r) {
      sum = sum + nets[r]->parameters()[p].grad();
    }
    made.gradients.push_back(sum);
  }
  made.input_gradient = c.images.grad();
  c.images.mutable_grad() = at::Tensor();
  made.buffers = nets.front()->buffers();
  return made;
}

Outcome by_lockstep(Case& c, const std::string& kind, std::int64_t replicas) {
  c.net->to(kind == "cpu" ? torch::Device("cpu") : test::sim(0));
  DataParallel model(
      c.net,
      {.devices = kind + "*" + std::to_string(replicas),
       .threads_per_replica = 1});
  torch::manual_seed(kDropoutSeed);
  Outcome made{.output = model->forward(c.images)};
  loss_of(made.output).backward();
  for (const at::Tensor& parameter : c.net->parameters()) {
    made.gradients.push_back(parameter.grad());
  }
  made.input_gradient = c.images.grad();
  made.buffers = c.net->buffers();
  return made;
}

void expect_same(
    const char* what,
    const at::Tensor& got,
    const at::Tensor& want) {
  ASSERT_EQ(got.defined(), want.defined()) << what;
  if (want.defined()) {
    EXPECT_TRUE(same_bits(got, want))
        << what << ", largest difference "
        << (got.cpu() - want.cpu()).abs().max().item<double>();
  }
}

class RandomNets
    : public testing::TestWithParam<std::tuple<std::string, int, bool>> {};

TEST_P(RandomNets, EqualTheComputationByHandBitForBit) {
  const auto [kind, replicas, has_dropout] = GetParam();
  for (int n = 0; n < kNets; ++n) {
    const unsigned seed =
        1000U * static_cast<unsigned>(replicas) + static_cast<unsigned>(n);
    Case c = random_case(seed, has_dropout);
    std::ostringstream trace;
    trace << "seed " << seed << ", images " << c.images.sizes() << ", "
          << *c.net;
    SCOPED_TRACE(trace.str());
    const Outcome want = by_hand(c, kind, replicas);
    const Outcome got = by_lockstep(c, kind, replicas);
    expect_same("output", got.output, want.output);
    expect_same("input gradient", got.input_gradient, want.input_gradient);
    for (std::size_t i = 0; i < want.gradients.size(); ++i) {
      expect_same("gradient", got.gradients[i], want.gradients[i]);
    }
    for (std::size_t i = 0; i < want.buffers.size(); ++i) {
      expect_same("buffer", got.buffers[i], want.buffers[i]);
    }
    if (HasFailure()) {
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Parallel,
    RandomNets,
    testing::Combine(
        testing::Values("cpu", "sim"),
        testing::Values(2, 3, 4, 8),
        testing::Bool()),
    [](const auto& test) {
      return std::get<0>(test.param) + std::to_string(std::get<1>(test.param)) +
             (std::get<2>(test.param) ? "WithDropout" : "");
    });

} // namespace
} // namespace lockstep
