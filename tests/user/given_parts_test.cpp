// SPDX-License-Identifier: BSD-3-Clause
//
// Nets of users that register what their constructor was given: tensors and
// layers. LibTorch's clone() gives those of the original away.
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/scratch_dir.h"
#include "tests/user/programs.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::close;
using test::Warnings;
using testing::ElementsAre;
using testing::HasSubstr;
using torch::Tensor;

Tensor ramp(torch::IntArrayRef sizes) {
  const auto numel = c10::multiply_integers(sizes);
  return torch::linspace(-1, 1, numel).view(sizes);
}

// Everything at once: buffers and parameters that members hold or do not hold,
// a frozen one, one tensor under two names, a count that forward changes.
struct GivenImpl : nn::Cloneable<GivenImpl> {
  GivenImpl(const torch::Device& device, nn::Sequential given_body)
      : scale(ramp({4}).to(device)),
        shift(torch::zeros({4}, device)),
        table(ramp({6, 4}).to(device)),
        position(ramp({4}).to(device)),
        count(torch::zeros({1}, device)),
        body(std::move(given_body)) {
    body->to(device);
    reset();
    shift.set_requires_grad(false);
  }
  void reset() override {
    register_parameter("scale", scale);
    shift = register_parameter("shift", shift, false);
    embedding = register_module(
        "embedding",
        nn::Embedding(nn::EmbeddingOptions(6, 4)._weight(table)));
    register_parameter("decoder", table);
    position = register_buffer("position", position);
    register_buffer("count", count);
    register_module("body", body);
  }
  Tensor forward(const Tensor& ids) {
    count.add_(1);
    const auto x = embedding->forward(ids) * scale + shift + position;
    return torch::linear(body->forward(x), table);
  }
  Tensor scale;
  Tensor shift;
  Tensor table;
  Tensor position;
  Tensor count;
  nn::Sequential body;
  nn::Embedding embedding = nullptr;
};

std::shared_ptr<GivenImpl> given_on(const torch::Device& device) {
  torch::manual_seed(2);
  return std::make_shared<GivenImpl>(
      device,
      nn::Sequential(nn::Linear(4, 4), nn::BatchNorm1d(4), nn::ReLU()));
}

class GivenParts : public test::OnDevices {
 protected:
  Tensor ids() {
    return here(torch::tensor({0, 1, 2, 5, 4, 4, 3, 0}));
  }
  // Handles and what they hold.
  static std::vector<std::pair<const void*, const void*>> places(
      const nn::Module& net) {
    std::vector<std::pair<const void*, const void*>> all;
    for (const auto& list : {net.parameters(), net.buffers()}) {
      for (const Tensor& t : list) {
        all.emplace_back(t.unsafeGetTensorImpl(), t.const_data_ptr());
      }
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(
    Programs,
    GivenParts,
    testing::Values("cpu*2", "cpu*3", "sim*2", "sim*3"),
    [](const auto& param) { return test::name_of_devices(param.param); });

// Losses of three steps, with the file of the first in between.
template <class Model>
std::vector<float>
run_training(Model& model, nn::Module& net, const Tensor& ids, bool reloads) {
  torch::optim::Adam adam(net.parameters(), 0.1);
  std::vector<float> losses;
  for (int step = 0; step < 3; ++step) {
    adam.zero_grad();
    const auto loss = model.forward(ids).square().mean();
    loss.backward();
    adam.step();
    losses.push_back(loss.template item<float>());
    if (reloads && step == 0) {
      const test::ScratchDir folder;
      save({{"net", state_dict(model)}}, folder.path() + "/n.pth");
      load_weights(model, folder.path() + "/n.pth");
    }
  }
  return losses;
}

TEST_P(GivenParts, StayWhereTheyAreAndTrainAsOnOneDevice) {
  const auto alone = given_on(home());
  // Statistics of a batch are those of a part.
  alone->body->eval();
  const auto expected = run_training(*alone, *alone, ids(), false);
  const auto net = given_on(home());
  net->body->eval();
  const auto before = places(*net);
  Warnings warnings;
  DataParallel model(net, {.devices = GetParam()});
  EXPECT_EQ(warnings.text, "");
  EXPECT_EQ(places(*net), before);
  EXPECT_FALSE(net->shift.requires_grad());
  EXPECT_TRUE(net->scale.requires_grad());
  EXPECT_FALSE(net->body->is_training());
  const auto losses = run_training(*model, *net, ids(), true);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], expected[i], 1e-5) << i;
  }
  EXPECT_EQ(net->count.item<float>(), 3) << "as replica 0 counted";
  for (const auto& item : alone->named_parameters()) {
    EXPECT_TRUE(close(net->named_parameters()[item.key()], item.value()))
        << item.key();
  }
}

TEST_P(GivenParts, OfTheModuleAreNotThoseOfReplicas) {
  const auto net = given_on(home());
  DataParallel model(net, {.devices = GetParam()});
  const auto& replica = model->group().replica(1);
  const auto mine = replica.named_parameters();
  for (const auto& item : net->named_parameters()) {
    EXPECT_FALSE(mine[item.key()].is_same(item.value())) << item.key();
  }
  EXPECT_TRUE(mine["decoder"].is_same(mine["embedding.weight"])) << "tied";
  EXPECT_FALSE(replica.named_buffers()["position"].is_alias_of(net->position));
  EXPECT_FALSE(mine["shift"].requires_grad());
}

TEST_P(GivenParts, OfAFactoryAreCopiedToo) {
  const auto net = given_on(home());
  const auto alone = given_on(home());
  const auto before = places(*net);
  DataParallel model(net, {.devices = GetParam(), .factory = [&net] {
                             auto made = std::make_shared<GivenImpl>(
                                 net->scale.device(),
                                 net->body);
                             made->scale = net->scale;
                             return made;
                           }});
  EXPECT_EQ(places(*net), before);
  net->eval();
  alone->eval();
  EXPECT_TRUE(close(model->forward(ids()), alone->forward(ids())));
}

struct KeeperImpl : nn::Cloneable<KeeperImpl> {
  KeeperImpl(nn::Sequential given_body, Tensor given_weight)
      : body(std::move(given_body)), weight(std::move(given_weight)) {
    reset();
  }
  void reset() override {
    register_module("body", body);
    register_parameter("weight", weight);
  }
  Tensor forward(const Tensor& x) {
    return body->forward(x);
  }
  nn::Sequential body;
  Tensor weight;
};

TEST_P(GivenParts, CapturedByAFunctionAreTheReplicas) {
  const auto weight = here(ramp({4})).requires_grad_();
  nn::Sequential net(
      nn::Linear(4, 4),
      nn::Functional([weight](const Tensor& x) { return x * weight; }));
  net->to(home());
  const auto x = here(ramp({8, 4}));
  const auto expected = net->forward(x);
  expected.sum().backward();
  const auto gradient = weight.grad().clone();
  weight.mutable_grad() = Tensor();
  DataParallel model(
      std::make_shared<KeeperImpl>(net, weight),
      {.devices = GetParam()});
  const auto got = model->forward(x);
  got.sum().backward();
  EXPECT_TRUE(close(got, expected));
  EXPECT_TRUE(close(weight.grad(), gradient));
}

TEST_P(GivenParts, AFrozenEmbeddingStaysFrozen) {
  const auto table = here(ramp({6, 4}));
  const auto bits = table.clone();
  nn::Embedding net = nn::Embedding::from_pretrained(table);
  DataParallel model(net, {.devices = GetParam()});
  EXPECT_FALSE(net->weight.requires_grad());
  EXPECT_TRUE(net->weight.is_same(table));
  EXPECT_TRUE(test::same_bits(model->forward(ids()), bits.index({ids()})));
  const auto copy =
      std::dynamic_pointer_cast<nn::EmbeddingImpl>(clone_module(*net, home()));
  EXPECT_FALSE(copy->weight.is_alias_of(table));
  EXPECT_TRUE(copy->options._weight().is_same(copy->weight));
  EXPECT_FALSE(copy->weight.requires_grad());
}

TEST(GivenPart, ThatMembersOfACloneWouldShareIsNamed) {
  const auto net = given_on(torch::kCPU);
  const std::string error = test::torch_error([&] { clone_module(*net); });
  EXPECT_THAT(error, HasSubstr("'body'"));
  EXPECT_THAT(error, HasSubstr("'scale'"));
  EXPECT_THAT(error, HasSubstr("w.clone()"));
  EXPECT_THAT(error, testing::Not(HasSubstr("embedding")));
}

TEST(MaxNorm, ShortensRowsAsOneDeviceDoes) {
  for (const char* devices : {"cpu*2", "sim*2"}) {
    const auto home = parse_devices(devices).front();
    const auto make = [&home] {
      auto net = nn::Embedding::from_pretrained(
          ramp({6, 4}) * 3,
          nn::EmbeddingFromPretrainedOptions().freeze(false).max_norm(1.0));
      net->to(home);
      return net;
    };
    auto net = make();
    auto alone = make();
    const auto ids = torch::tensor({0, 1, 1, 5}).to(home);
    DataParallel model(net, {.devices = devices});
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_TRUE(test::same_bits(model->forward(ids), alone->forward(ids)));
      EXPECT_TRUE(test::same_bits(net->weight, alone->weight)) << devices;
    }
  }
}

TEST(OutputDevice, CountsOnOneDeviceToo) {
  const auto x = ramp({2, 4});
  for (const char* device : {"cpu", "sim:1"}) {
    nn::Linear net = test::linear();
    net->to(parse_devices(device).front());
    DataParallel model(net, {.devices = device, .output_device = "sim:2"});
    const auto out = model->forward(x.to(net->weight.device()));
    EXPECT_EQ(out.device(), test::sim(2)) << device;
    out.sum().backward();
    EXPECT_TRUE(net->weight.grad().defined());
  }
}

} // namespace
} // namespace lockstep
