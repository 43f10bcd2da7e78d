// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"
#include "lockstep/models/segmentation.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/rng.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/models/support.h"

namespace lockstep {
namespace {

std::shared_ptr<Model> clone(const Model& net) {
  return std::dynamic_pointer_cast<Model>(net.clone());
}

TEST(Clone, HoldsEqualWeightsInItsOwnMemory) {
  for (const char* name : {"resnet18", "resnet50", "TheModelClass", "mlp"}) {
    const auto net = make_model(name, {.num_classes = 10, .in_channels = 1});
    const auto copy = clone(*net);
    EXPECT_EQ(test::digest(*copy), test::digest(*net)) << name;
    EXPECT_EQ(to_string(*copy), to_string(*net)) << name;
    const StateDict ours = state_dict(*net);
    const StateDict theirs = state_dict(*copy);
    for (std::size_t i = 0; i < ours.entries.size(); ++i) {
      EXPECT_FALSE(ours.entries[i].second.is_alias_of(theirs.entries[i].second))
          << ours.entries[i].first;
    }
  }
}

TEST(Clone, DrawsNoRandomNumbers) {
  const auto net = make_model("resnet18");
  const at::Tensor before = get_rng_state();
  (void)clone(*net);
  EXPECT_TRUE(torch::equal(get_rng_state(), before));
}

TEST(Clone, UsesItsOwnLayersInForward) {
  torch::manual_seed(0);
  const auto net = resnet18({.num_classes = 10, .in_channels = 1});
  const auto copy = std::dynamic_pointer_cast<ResNet>(net->clone());
  const torch::NoGradGuard no_grad;
  const auto images = torch::randn({2, 1, 28, 28});
  const auto expected = net->forward(images);
  net->fc->weight.zero_();
  net->conv1->weight.zero_();
  net->layer2[0]
      ->as<BasicBlock>()
      ->downsample[0]
      ->as<torch::nn::Conv2d>()
      ->weight.zero_();
  EXPECT_TRUE(torch::equal(copy->forward(images), expected));
  EXPECT_EQ(copy->conv1->options.in_channels(), 1);
  EXPECT_EQ(copy->fc->options.out_features(), 10);
}

TEST(Clone, KeepsFlagsAndModes) {
  const auto net = resnet18();
  net->eval();
  net->layer3->train();
  net->conv1->weight.set_requires_grad(false);
  const auto copy = std::dynamic_pointer_cast<ResNet>(net->clone());
  EXPECT_FALSE(copy->is_training());
  EXPECT_TRUE(copy->layer3->is_training());
  EXPECT_FALSE(copy->layer2->is_training());
  EXPECT_FALSE(copy->conv1->weight.requires_grad());
  EXPECT_TRUE(copy->fc->weight.requires_grad());
}

TEST(Clone, KeepsALayerTheUserReplaced) {
  const auto net = resnet18();
  net->fc = net->replace_module(
      "fc",
      torch::nn::Linear(torch::nn::LinearOptions(512, 3).bias(false)));
  const auto copy = std::dynamic_pointer_cast<ResNet>(net->clone());
  EXPECT_EQ(test::digest(*copy), test::digest(*net));
  EXPECT_EQ(copy->forward(torch::randn({2, 3, 32, 32})).size(1), 3);
}

// Names, and whether a copy of each has memory of its own.
void expect_own(const torch::nn::Module& net, const torch::nn::Module& copy) {
  const auto compare = [](const auto& ours, const auto& theirs) {
    EXPECT_EQ(ours.keys(), theirs.keys());
    for (const auto& item : ours) {
      const at::Tensor& copied = theirs[item.key()];
      EXPECT_TRUE(torch::equal(item.value(), copied)) << item.key();
      EXPECT_FALSE(item.value().is_alias_of(copied)) << item.key();
      EXPECT_EQ(item.value().requires_grad(), copied.requires_grad());
    }
  };
  compare(net.named_parameters(), copy.named_parameters());
  compare(net.named_buffers(), copy.named_buffers());
}

// Whether a member of the model holds it or not.
TEST(Clone, CopiesAllThatIsRegistered) {
  const auto net = fcn_resnet18({.num_classes = 2, .aux_loss = true});
  net->aux_classifier = nullptr;
  net->register_module("extra", torch::nn::BatchNorm1d(3));
  net->backbone->register_buffer("mean", torch::rand({3}));
  net->register_parameter("scale", torch::rand({3}));
  net->register_parameter("frozen", torch::rand({3}), false);
  expect_own(*net, *net->clone());
  expect_own(*net, *clone_module(*net));
}

TEST(Clone, OfAModuleKeepsNamesInsideASequential) {
  torch::nn::Sequential net(
      {{"conv1", torch::nn::AnyModule(torch::nn::Conv2d(1, 2, 3))},
       {"fc", torch::nn::AnyModule(torch::nn::Linear(2, 2))}});
  net->eval();
  const auto copy = clone_module(*net);
  EXPECT_EQ(test::digest(*copy), test::digest(*net));
  EXPECT_FALSE(copy->is_training());
}

} // namespace
} // namespace lockstep
