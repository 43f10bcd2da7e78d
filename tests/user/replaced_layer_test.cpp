// SPDX-License-Identifier: BSD-3-Clause
//
// `net->conv1 = Conv2d(...)` without replace_module: forward uses the new
// layer, everything else the old one, and LibTorch says nothing.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::Warnings;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct SwappedImpl : nn::Cloneable<SwappedImpl> {
  SwappedImpl() {
    reset();
  }
  void reset() override {
    conv1 = register_module("conv1", nn::Conv2d(3, 4, 3));
    body = register_module(
        "body",
        nn::Sequential(nn::ReLU(), nn::AdaptiveAvgPool2d(1), nn::Flatten()));
    fc = register_module("fc", nn::Linear(4, 2));
  }
  at::Tensor forward(const at::Tensor& x) {
    return fc->forward(body->forward(conv1->forward(x)));
  }
  nn::Conv2d conv1 = nullptr;
  nn::Sequential body = nullptr;
  nn::Linear fc = nullptr;
};
TORCH_MODULE(Swapped);

const char* const kLine =
    "write net->conv1 = net->replace_module(\"conv1\", "
    "torch::nn::Conv2d(...));";

TEST(ReplacedLayer, IsWarnedOfOnceByStateDict) {
  Swapped net;
  net->conv1 = nn::Conv2d(1, 4, 3);
  EXPECT_THAT(replaced_children(*net), ElementsAre("conv1"));
  Warnings warnings;
  (void)state_dict(*net);
  EXPECT_THAT(warnings.text, HasSubstr("holds the registered 'conv1'"));
  EXPECT_THAT(warnings.text, HasSubstr(kLine));
  warnings.text.clear();
  (void)state_dict(*net);
  EXPECT_EQ(warnings.text, "") << "again in each epoch";
  // Another module has the same fault: it is told, too.
  Swapped other;
  other->conv1 = nn::Conv2d(1, 4, 3);
  (void)state_dict(*other);
  EXPECT_THAT(warnings.text, HasSubstr(kLine));
}

TEST(ReplacedLayer, IsWarnedOfWhenWrapped) {
  Swapped net;
  net->fc = nn::Linear(4, 10);
  Warnings warnings;
  const DataParallel model(net, {.devices = "cpu*2"});
  EXPECT_THAT(
      warnings.text,
      HasSubstr("net->replace_module(\"fc\", torch::nn::Linear(...));"));
}

// The same shapes: nothing but the values would differ.
TEST(ReplacedLayer, AfterWrappingIsAnErrorOfTheNextStep) {
  Swapped net;
  DataParallel model(net, {.devices = "cpu*2"});
  const auto x = torch::randn({4, 3, 8, 8});
  model->forward(x).sum().backward();
  net->fc = nn::Linear(4, 2);
  Warnings warnings;
  const Error error = test::error_of([&] { model->forward(x); });
  EXPECT_THAT(warnings.text, HasSubstr("holds the registered 'fc'"));
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_THAT(
      error.message,
      HasSubstr("registered nowhere where replica 1 uses the parameter 'fc."));
  EXPECT_THAT(error.hint, HasSubstr("replace_module"));
  // Made good, it goes on.
  net->fc = net->replace_module("fc", net->fc);
  model->forward(x).sum().backward();
  EXPECT_TRUE(net->fc->weight.grad().defined());
}

TEST(ReplacedLayer, IsTheHintWhereReplicasDiffer) {
  Warnings quiet;
  const auto net = resnet18({.num_classes = 10});
  net->conv1 = nn::Conv2d(nn::Conv2dOptions(1, 64, 7).stride(2).padding(3));
  const Error error =
      test::error_of([&] { DataParallel(net, {.devices = "cpu*2"}); });
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_THAT(error.hint, HasSubstr(kLine));
  EXPECT_THAT(error.hint, Not(HasSubstr("factory")));
}

TEST(ReplacedLayer, IsRightWithReplaceModule) {
  Swapped net;
  net->conv1 = net->replace_module("conv1", nn::Conv2d(1, 4, 3));
  Warnings warnings;
  EXPECT_EQ(state_dict(*net).get("conv1.weight").size(1), 1);
  DataParallel model(net, {.devices = "cpu*2"});
  (void)state_dict(*model);
  EXPECT_EQ(model->forward(torch::randn({4, 1, 8, 8})).size(0), 4);
  EXPECT_EQ(warnings.text, "");
}

TEST(ReplacedLayer, IsFoundAtAnyDepth) {
  auto net = make_model("resnet18");
  auto& block = *net->named_children()["layer1"]->children().at(0);
  dynamic_cast<BasicBlock&>(block).conv2 = nn::Conv2d(64, 64, 1);
  EXPECT_THAT(replaced_children(*net), ElementsAre("layer1.0.conv2"));
  EXPECT_THAT(
      replaced_children_hint(*net),
      HasSubstr("write block->conv2 = block->replace_module(\"conv2\", "));
}

// Two layers with one weight: LibTorch's clone() gives each its own again.
struct TiedImpl : nn::Cloneable<TiedImpl> {
  TiedImpl() {
    reset();
  }
  void reset() override {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::Linear(4, 4));
    b->weight = a->weight;
  }
  at::Tensor forward(const at::Tensor& x) {
    return b->forward(a->forward(x));
  }
  nn::Linear a = nullptr;
  nn::Linear b = nullptr;
};

TEST(ReplacedParameter, IsWarnedOfWhenWrapped) {
  const auto net = std::make_shared<TiedImpl>();
  EXPECT_THAT(replaced_tensors(*net), ElementsAre("b.weight"));
  Warnings warnings;
  const DataParallel model(net, {.devices = "cpu*2"});
  EXPECT_THAT(warnings.text, HasSubstr("the registered 'b.weight'"));
  nn::ParameterList list;
  list->append(torch::ones({2}));
  EXPECT_THAT(replaced_tensors(*list), IsEmpty());
}

// Calls its layers by their place among the children.
struct Chain : nn::Module {
  explicit Chain(int layers) {
    for (int i = 0; i < layers; ++i) {
      register_module("layer" + std::to_string(i), nn::Linear(2, 2));
    }
  }
};
struct KeptChain : Chain {
  KeptChain() : Chain(1) {}
  std::vector<std::shared_ptr<nn::Module>> layers = children();
};

TEST(ReplacedLayer, SuspicionCanBeSilenced) {
  EXPECT_THAT(replaced_children(Chain(1)), ElementsAre("layer0"));
  EXPECT_THAT(
      replaced_children_hint(Chain(1)),
      HasSubstr("keep the layer's shared_ptr in a member to silence this"));
  EXPECT_THAT(replaced_children(KeptChain()), IsEmpty());
}

TEST(ReplacedLayer, IsNotSuspectedOfARegistry) {
  EXPECT_THAT(replaced_children(Chain(2)), IsEmpty());
}

using Modules = std::vector<std::shared_ptr<nn::Module>>;

Modules stock_containers() {
  const nn::ModuleDict dict(
      std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{
          {"one", nn::Linear(2, 2).ptr()}});
  return {
      nn::Sequential(nn::Linear(2, 2), nn::ReLU()).ptr(),
      nn::Sequential({{"one", nn::AnyModule(nn::Linear(2, 2))}}).ptr(),
      nn::ModuleList(nn::Linear(2, 2), nn::ReLU()).ptr(),
      dict.ptr()};
}

Modules stock_layers() {
  const auto encoder_layer = nn::TransformerEncoderLayerOptions(8, 2);
  const auto decoder_layer = nn::TransformerDecoderLayerOptions(8, 2);
  return {
      nn::MultiheadAttention(8, 2).ptr(),
      nn::Transformer(nn::TransformerOptions(8, 2, 2, 2)).ptr(),
      nn::TransformerEncoder(
          nn::TransformerEncoderOptions(encoder_layer, 2)
              .norm(nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({8})))))
          .ptr(),
      nn::TransformerDecoder(
          nn::TransformerDecoderOptions(decoder_layer, 2)
              .norm(nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({8})))))
          .ptr(),
      nn::TransformerEncoderLayer(encoder_layer).ptr(),
      nn::TransformerDecoderLayer(decoder_layer).ptr(),
      nn::AdaptiveLogSoftmaxWithLoss(
          nn::AdaptiveLogSoftmaxWithLossOptions(16, 10, {4, 8}))
          .ptr(),
      nn::LSTM(nn::LSTMOptions(2, 3).num_layers(2)).ptr(),
      nn::GRU(2, 3).ptr(),
      nn::RNN(2, 3).ptr(),
      nn::LSTMCell(2, 3).ptr(),
      nn::Embedding(4, 2).ptr(),
      nn::EmbeddingBag(4, 2).ptr(),
      nn::BatchNorm2d(2).ptr(),
      nn::Bilinear(2, 2, 2).ptr(),
      nn::CrossEntropyLoss().ptr(),
      nn::TripletMarginWithDistanceLoss().ptr()};
}

TEST(ReplacedLayer, IsInNoStockModuleNorItsClone) {
  Warnings quiet; // the transformers warn of their own
  for (const Modules& modules : {stock_containers(), stock_layers()}) {
    for (const auto& module : modules) {
      EXPECT_THAT(replaced_children(*module), IsEmpty()) << module->name();
      EXPECT_THAT(replaced_tensors(*module), IsEmpty()) << module->name();
      EXPECT_THAT(replaced_children(*clone_module(*module)), IsEmpty())
          << "clone of " << module->name();
    }
  }
}

TEST(ReplacedLayer, IsInNoModelOfOurs) {
  for (const char* name :
       {"resnet18",
        "resnet50",
        "vgg11_bn",
        "TheModelClass",
        "mlp",
        "fcn_resnet18",
        "deeplabv3_resnet18",
        "unet_small"}) {
    const auto net = make_model(name, {.num_classes = 10, .in_channels = 1});
    EXPECT_THAT(replaced_children(*net), IsEmpty()) << name;
    EXPECT_THAT(replaced_tensors(*net), IsEmpty()) << name;
    const DataParallel model(net, {.devices = "cpu*2"});
    EXPECT_THAT(replaced_children(*model), IsEmpty()) << name;
  }
}

} // namespace
} // namespace lockstep
