// SPDX-License-Identifier: BSD-3-Clause
//
// load_state_dict(.by_position): a VGG19, whose layers have other
// names in the file than in the program.
#include <gmock/gmock.h>

#include "lockstep/tensor/state_dict.h"
#include "tests/tensor/modules.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// Convolution, batch norm, linear: no shape occurs twice in a row by chance.
struct Small : nn::Module {
  explicit Small(bool has_head = true) {
    conv = register_module("conv", nn::Conv2d(1, 4, 3));
    norm = register_module("norm", nn::BatchNorm2d(4));
    if (has_head) {
      head = register_module("head", nn::Linear(4, 2));
    }
  }
  nn::Conv2d conv = nullptr;
  nn::BatchNorm2d norm = nullptr;
  nn::Linear head = nullptr;
};

// The weights of a trained Small under the names of a nameless Sequential.
StateDict numbered() {
  Small trained;
  const torch::NoGradGuard no_grad;
  for (auto& parameter : trained.parameters()) {
    parameter.uniform_(1, 2);
  }
  trained.norm->num_batches_tracked.fill_(7);
  StateDict weights = state_dict(trained);
  const std::vector<std::string> layers{"conv", "norm", "head"};
  const auto renamed = [&](const std::string& name) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (name.starts_with(layers[i])) {
        return "features." + std::to_string(i) + name.substr(layers[i].size());
      }
    }
    return name;
  };
  for (auto& [key, tensor] : weights.entries) {
    key = renamed(key);
    tensor = tensor.clone();
  }
  for (auto& [path, version] : weights.versions) {
    path = renamed(path);
  }
  return weights;
}

void expect_loaded(const Small& net, const StateDict& weights) {
  EXPECT_TRUE(net.conv->weight.equal(weights.get("features.0.weight")));
  EXPECT_TRUE(net.norm->bias.equal(weights.get("features.1.bias")));
  EXPECT_EQ(net.norm->num_batches_tracked.item<int>(), 7);
}

TEST(ByPosition, GivesWeightsTheModelsNamesAndSaysWhich) {
  const StateDict weights = numbered();
  Small net;
  const LoadReport report =
      load_state_dict(net, weights, {.by_position = true});
  expect_loaded(net, weights);
  EXPECT_TRUE(net.head->bias.equal(weights.get("features.2.bias")));
  EXPECT_EQ(to_string(report), "<All keys matched successfully>");
  ASSERT_EQ(report.mapping.size(), 9U);
  EXPECT_THAT(report.mapping[0], Pair("features.0.weight", "conv.weight"));
  EXPECT_THAT(
      report.mapping[6],
      Pair("features.1.num_batches_tracked", "norm.num_batches_tracked"));
}

TEST(ByPosition, OfAFileValueToo) {
  const StateDict weights = numbered();
  Small net;
  load_state_dict(net, to_value(weights), {.by_position = true});
  expect_loaded(net, weights);
}

TEST(ByPosition, SaysWhatIsLeftOver) {
  const StateDict weights = numbered();
  Small net(/*has_head=*/false);
  const at::Tensor before = net.conv->weight.clone();
  const std::string text =
      error_of([&] {
        load_state_dict(net, weights, {.by_position = true});
      }).message;
  EXPECT_THAT(
      text,
      HasSubstr("Unexpected key(s) in state_dict: "
                "\"features.2.weight\", \"features.2.bias\". "));
  EXPECT_TRUE(net.conv->weight.equal(before));
  const LoadReport report =
      load_state_dict(net, weights, {.strict = false, .by_position = true});
  expect_loaded(net, weights);
  EXPECT_THAT(report.missing_keys, IsEmpty());
  EXPECT_THAT(
      report.unexpected_keys,
      ElementsAre("features.2.weight", "features.2.bias"));
}

// A left-over entry must not get in by its name.
TEST(ByPosition, NamesDoNotCount) {
  StateDict weights = numbered();
  weights.entries.pop_back();
  weights.entries.emplace_back("head.bias", torch::full({3}, 9.0));
  Small net;
  const LoadReport report =
      load_state_dict(net, weights, {.strict = false, .by_position = true});
  EXPECT_THAT(report.missing_keys, ElementsAre("head.bias"));
  EXPECT_THAT(report.unexpected_keys, ElementsAre("head.bias"));
}

// Files from before PyTorch 0.4.1 have no such counter; the model keeps its.
TEST(ByPosition, OldBatchNormsLackTheirCounter) {
  StateDict weights = numbered();
  weights.versions.clear();
  std::erase_if(weights.entries, [](const auto& entry) {
    return entry.first.ends_with("num_batches_tracked");
  });
  Small net;
  load_state_dict(net, weights, {.by_position = true});
  EXPECT_TRUE(net.norm->bias.equal(weights.get("features.1.bias")));
  EXPECT_EQ(net.norm->num_batches_tracked.item<int>(), 0);
}

TEST(ByPosition, RefusesWhatShapesDoNotDecide) {
  StateDict weights = numbered();
  weights.entries.erase(weights.entries.begin() + 3); // one of four of [4]
  Small net;
  const Error error =
      error_of([&] { load_state_dict(net, weights, {.by_position = true}); });
  EXPECT_EQ(error.detail, "E_AMBIGUOUS");
  EXPECT_THAT(error.message, HasSubstr("position and shape do not decide"));
  nn::Linear other(50, 60);
  EXPECT_EQ(
      error_of([&] {
        load_state_dict(*other, weights, {.by_position = true});
      }).detail,
      "E_NO_MATCH");
}

// `front` convolutions, then a classifier or heads, as in a pose network that
// starts from VGG19's first twenty tensors.
nn::Sequential network(int front, std::initializer_list<int> ends) {
  nn::Sequential net;
  for (int i = 0; i < front; ++i) {
    net->push_back(nn::Conv2d(nn::Conv2dOptions(i + 1, i + 2, 3)));
  }
  for (const int classes : ends) {
    net->push_back(nn::Linear(front + 1, classes));
  }
  return net;
}

TEST(ByPosition, TheFirstFewGoToTheFirstFew) {
  const auto pretrained = network(16, {4, 4, 10});
  auto net = network(10, {3, 5});
  const auto head = net->parameters().back().clone();
  const LoadReport report = load_state_dict(
      *net,
      state_dict(*pretrained),
      {.by_position = true, .first = 20});
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(net->parameters()[i].equal(pretrained->parameters()[i])) << i;
  }
  EXPECT_TRUE(net->parameters().back().equal(head));
  EXPECT_EQ(report.taken, 20);
  EXPECT_EQ(report.mapping.size(), 20U);
  EXPECT_THAT(
      report.missing_keys,
      ElementsAre("10.weight", "10.bias", "11.weight", "11.bias"));
  EXPECT_EQ(report.unexpected_keys.size(), 18U);
}

TEST(ByPosition, TheFirstFewMustFit) {
  const auto pretrained = state_dict(*network(16, {10}));
  auto net = network(10, {3});
  const auto before = net->parameters().front().clone();
  const auto error = [&](const LoadStateDictOptions& options) {
    return error_of([&] { load_state_dict(*net, pretrained, options); });
  };
  EXPECT_THAT(
      error({.by_position = true, .first = 21}).message,
      HasSubstr("entry 21 is '10.weight' [12, 11, 3, 3] in the file, "
                "'10.weight' [3, 11] in the model"));
  EXPECT_THAT(
      error({.by_position = true, .first = 23}).message,
      HasSubstr("the first 23 tensors: the file has 34, the model 22"));
  EXPECT_THAT(
      error({.by_position = true, .first = -1}).message,
      HasSubstr("the first -1 tensors"));
  EXPECT_THAT(
      error({.first = 20}).message,
      HasSubstr(".by_position = true alone"));
  EXPECT_TRUE(net->parameters().front().equal(before));
}

} // namespace
} // namespace lockstep
