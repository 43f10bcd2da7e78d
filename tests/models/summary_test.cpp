// SPDX-License-Identifier: BSD-3-Clause
//
// Totals are those that torchinfo 1.8.0 prints with PyTorch 2.13; it counts 64
// bytes of Python's more for an input.
#include "lockstep/models/internal/summary.h"

#include <thread>

#include <ATen/ThreadLocalState.h>
#include <gmock/gmock.h>
#include <torch/nn.h>

#include "lockstep/models/model.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Shape = std::vector<std::int64_t>;

// The layer called `name`; a test that asks for one that is missing fails.
const LayerSummary& layer(
    const ModelSummary& summary,
    const std::string& name) {
  for (const LayerSummary& each : summary.layers) {
    if (each.name == name) {
      return each;
    }
  }
  ADD_FAILURE() << "no layer " << name;
  return summary.layers.front();
}

TEST(Summary, TotalsAreTorchinfos) {
  struct Row {
    std::string model;
    Shape input;
    std::int64_t params;
    std::int64_t mult_adds;
    std::int64_t input_bytes;
    std::int64_t pass_bytes;
    std::int64_t param_bytes;
  };
  const std::vector<Row> rows = {
      {"resnet18",
       {1, 3, 224, 224},
       11'689'512,
       1'814'083'944,
       602'112,
       39'747'392,
       46'758'048},
      {"resnet152",
       {1, 3, 224, 224},
       60'192'808,
       11'513'779'048,
       602'112,
       360'873'792,
       240'771'232},
      {"vgg19",
       {1, 3, 224, 224},
       143'667'240,
       19'646'923'752,
       602'112,
       118'890'304,
       574'668'960},
      {"resnet18",
       {2, 3, 64, 64},
       11'689'512,
       297'136'848,
       98'304,
       6'504'064,
       46'758'048},
  };
  for (const auto& row : rows) {
    const auto net = make_model(row.model);
    const ModelSummary summary = summarize(*net, torch::zeros(row.input));
    EXPECT_EQ(summary.params, row.params) << row.model;
    EXPECT_EQ(summary.trainable_params, row.params) << row.model;
    EXPECT_EQ(summary.mult_adds, row.mult_adds) << row.model;
    EXPECT_EQ(summary.input_bytes, row.input_bytes) << row.model;
    EXPECT_EQ(summary.pass_bytes, row.pass_bytes) << row.model;
    EXPECT_EQ(summary.param_bytes, row.param_bytes) << row.model;
  }
}

TEST(Summary, EveryLayerOfAResNetHasItsShape) {
  const auto net = make_model("resnet18");
  const ModelSummary summary = summarize(*net, torch::zeros({1, 3, 224, 224}));
  struct Row {
    std::string name;
    std::string type;
    Shape shape;
  };
  const std::vector<Row> rows = {
      {"", "ResNet", {1, 1000}},
      {"conv1", "Conv2d", {1, 64, 112, 112}},
      {"relu", "ReLU", {1, 64, 112, 112}},
      {"maxpool", "MaxPool2d", {1, 64, 56, 56}},
      {"layer1", "Sequential", {1, 64, 56, 56}},
      {"layer2.0", "BasicBlock", {1, 128, 28, 28}},
      {"layer2.0.relu", "ReLU", {1, 128, 28, 28}},
      {"layer2.0.downsample", "Sequential", {1, 128, 28, 28}},
      {"layer4.1.bn2", "BatchNorm2d", {1, 512, 7, 7}},
      {"avgpool", "AdaptiveAvgPool2d", {1, 512, 1, 1}},
      {"fc", "Linear", {1, 1000}},
  };
  for (const auto& row : rows) {
    const LayerSummary& found = layer(summary, row.name);
    EXPECT_EQ(found.type, row.type) << row.name;
    EXPECT_EQ(found.output_shape, row.shape) << row.name;
  }
  for (const LayerSummary& each : summary.layers) {
    EXPECT_FALSE(each.output_shape.empty()) << each.name;
  }
}

// As anybody writes it: functions between the modules, a layer used twice, one
// that is frozen and one that is never called.
struct Own : nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    auto y = torch::relu(first(x));
    y = again(again(y));
    return torch::matmul(y, own.t()).tanh();
  }
  nn::Linear first = register_module("first", nn::Linear(4, 8));
  nn::Linear again = register_module("again", nn::Linear(8, 8));
  nn::Linear unused = register_module("unused", nn::Linear(8, 3));
  torch::Tensor own = register_parameter("own", torch::ones({5, 8}));
};

TEST(Summary, TakesAModuleOfTheUsersOwn) {
  Own net;
  net.first->weight.requires_grad_(false);
  net.again->eval();
  const ModelSummary summary = summarize(net, torch::zeros({2, 4}));
  EXPECT_EQ(layer(summary, "first").output_shape, Shape({2, 8}));
  EXPECT_EQ(layer(summary, "again").mult_adds, 2 * 2 * (64 + 8)) << "twice";
  EXPECT_THAT(layer(summary, "unused").output_shape, IsEmpty());
  EXPECT_EQ(layer(summary, "").output_shape, Shape({2, 5}));
  EXPECT_EQ(layer(summary, "").params, 40);
  EXPECT_EQ(summary.params - summary.trainable_params, 32);
  EXPECT_TRUE(net.is_training()) << "as before";
  EXPECT_TRUE(net.first->is_training());
  EXPECT_FALSE(net.again->is_training());
}

TEST(Summary, APassThatThrowsLeavesTheModes) {
  const auto net = make_model("resnet18");
  EXPECT_THROW(summarize(*net, torch::zeros({1, 2, 64, 64})), c10::Error);
  EXPECT_TRUE(net->is_training());
}

TEST(Summary, IsATableWithTotals) {
  const auto net = make_model("mlp", {.num_classes = 10, .in_channels = 1});
  const std::string text =
      to_string(summarize(*net, torch::zeros({1, 1, 28, 28})));
  EXPECT_THAT(text, HasSubstr("Layer (type)           Output shape   Params"));
  EXPECT_THAT(text, HasSubstr("    1 (Linear)         [1, 256]      200,960"));
  EXPECT_THAT(text, HasSubstr("Total params: 235,146\n"));
  EXPECT_THAT(text, HasSubstr("Total mult-adds: 235,146 (0.24 M)\n"));
}

/// Its layer runs in a thread that has taken over the state of this one, as the
/// replicas of a DataParallel have.
struct Threaded : nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor out;
    const at::ThreadLocalState state;
    std::jthread([&] {
      const at::ThreadLocalStateGuard guard(state);
      out = inner->forward(x);
    }).join();
    return outer->forward(out);
  }
  nn::Linear inner = register_module("inner", nn::Linear(4, 3));
  nn::Linear outer = register_module("outer", nn::Linear(3, 2));
};

TEST(Summary, OperationsOfOtherThreadsAreLeftOut) {
  Threaded net;
  const ModelSummary summary = summarize(net, torch::zeros({5, 4}));
  EXPECT_EQ(layer(summary, "outer").output_shape, (Shape{5, 2}));
  EXPECT_EQ(layer(summary, "inner").mult_adds, 0);
  EXPECT_EQ(summary.params, 4 * 3 + 3 + 3 * 2 + 2);
}

} // namespace
} // namespace lockstep
