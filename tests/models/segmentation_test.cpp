// SPDX-License-Identifier: BSD-3-Clause
//
// FCN and DeepLabV3 beside the numbers of segmentation_golden_test.cpp.
#include "lockstep/models/segmentation.h"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/models/internal/summary.h"
#include "lockstep/models/model.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/models/support.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Shape = std::vector<std::int64_t>;

Error error_of_call(const std::function<void()>& action) {
  try {
    action();
  } catch (const Exception& exception) {
    return exception.error();
  }
  ADD_FAILURE() << "no error";
  return {};
}

std::vector<std::string> names_for(ModelTask task) {
  std::vector<std::string> names;
  for (const std::string& name : model_names()) {
    if (model_task(name) == task) {
      names.push_back(name);
    }
  }
  return names;
}

// First and second block: dilation and stride of their 3x3 convolutions.
template <class Block>
Shape dilations(const torch::nn::Sequential& layer) {
  Shape numbers;
  for (std::size_t i = 0; i < 2; ++i) {
    auto& block = *layer->ptr(i)->template as<Block>();
    numbers.push_back(block.conv2->options.dilation()->at(0));
    numbers.push_back(block.conv2->options.stride()->at(0));
  }
  return numbers;
}

TEST(ModelTask, IsKnownOfEveryModel) {
  EXPECT_THAT(
      names_for(ModelTask::kSegmentation),
      ElementsAre(
          "fcn_resnet18",
          "fcn_resnet34",
          "fcn_resnet50",
          "fcn_resnet101",
          "deeplabv3_resnet18",
          "deeplabv3_resnet34",
          "deeplabv3_resnet50",
          "deeplabv3_resnet101",
          "unet",
          "unet_small"));
  EXPECT_THAT(
      names_for(ModelTask::kClassification),
      testing::IsSupersetOf({"resnet18", "vgg11", "mlp"}));
  EXPECT_EQ(
      error_of_call([] { (void)model_task("u-net"); }).detail,
      "E_MODEL_NAME");
}

TEST(Backbone, DilatesTheFirstBlockAsTheLayerBefore) {
  const auto net = fcn_resnet50();
  EXPECT_EQ(dilations<Bottleneck>(net->backbone->layer2), (Shape{1, 2, 1, 1}));
  EXPECT_EQ(dilations<Bottleneck>(net->backbone->layer3), (Shape{1, 1, 2, 1}));
  EXPECT_EQ(dilations<Bottleneck>(net->backbone->layer4), (Shape{2, 1, 4, 1}));
}

TEST(Backbone, DilatesBothConvolutionsOfABasicBlock) {
  const auto net = fcn_resnet18();
  EXPECT_EQ(dilations<BasicBlock>(net->backbone->layer4), (Shape{2, 1, 4, 1}));
  const auto& first = *net->backbone->layer4[0]->as<BasicBlock>();
  EXPECT_EQ(first.conv1->options.dilation()->at(0), 2);
  EXPECT_EQ(first.conv1->options.stride()->at(0), 1);
}

// A layer with its stride has the classifier's weights, not its resolution.
TEST(Backbone, TakesTheWeightsOfTheClassifier) {
  const auto classifier = resnet18();
  const auto net = fcn_resnet18();
  StateDict weights = state_dict(*classifier);
  const LoadReport report =
      load_state_dict(*net->backbone, weights, {.strict = false});
  EXPECT_TRUE(report.missing_keys.empty());
  EXPECT_THAT(report.unexpected_keys, ElementsAre("fc.weight", "fc.bias"));
}

class EverySegmentation : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::shared_ptr<Model> made() {
    torch::manual_seed(1);
    return make_model(GetParam(), {.num_classes = 4, .in_channels = 1});
  }
};

TEST_P(EverySegmentation, GivesScoresAtTheSizeOfTheImages) {
  const auto net = made();
  net->eval();
  const torch::NoGradGuard no_grad;
  const std::int64_t smallest = image_sizes(GetParam()).smallest;
  for (const Shape& size :
       {Shape{1, 1, smallest, smallest + 1}, Shape{2, 1, 37, 22}}) {
    Shape expected = size;
    expected[1] = 4;
    const at::Tensor scores = net->forward(torch::randn(size));
    EXPECT_EQ(scores.sizes(), expected);
    EXPECT_EQ(scores.scalar_type(), torch::kFloat);
  }
}

TEST_P(EverySegmentation, TrainsEveryParameter) {
  const auto net = made();
  const auto images = torch::randn({3, 1, 32, 40});
  const auto targets = torch::randint(4, {3, 32, 40}, torch::kLong);
  torch::cross_entropy_loss(net->forward(images), targets).backward();
  for (const auto& item : net->named_parameters()) {
    const at::Tensor& gradient = item.value().grad();
    ASSERT_TRUE(gradient.defined()) << item.key();
    EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << item.key();
    EXPECT_GT(gradient.abs().max().item<float>(), 0) << item.key();
  }
}

TEST_P(EverySegmentation, ClonesItself) {
  const auto net = made();
  net->eval();
  const auto copy = std::dynamic_pointer_cast<Model>(net->clone());
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(test::digest(*copy), test::digest(*net));
  EXPECT_EQ(to_string(*copy), to_string(*net));
  const torch::NoGradGuard no_grad;
  const auto images = torch::randn({2, 1, 32, 24});
  const at::Tensor expected = net->forward(images);
  for (at::Tensor& parameter : net->parameters()) {
    parameter.zero_();
  }
  EXPECT_TRUE(torch::equal(copy->forward(images), expected));
}

TEST_P(EverySegmentation, WorksWithChannelsLast) {
  const auto net = made();
  const torch::NoGradGuard no_grad;
  net->eval();
  const auto images = torch::randn({2, 1, 33, 24});
  const at::Tensor expected = net->forward(images);
  to_memory_format(*net, at::MemoryFormat::ChannelsLast);
  const at::Tensor scores =
      net->forward(in_memory_format(images, at::MemoryFormat::ChannelsLast));
  // Other kernels, other orders of sums.
  EXPECT_LE(
      (scores - expected).abs().max().item<double>(),
      1e-3 * expected.abs().max().item<double>());
}

INSTANTIATE_TEST_SUITE_P(
    Registry,
    EverySegmentation,
    testing::ValuesIn(names_for(ModelTask::kSegmentation)),
    [](const auto& one) { return one.param; });

TEST(AuxLoss, AddsAHeadThatForwardLeavesOut) {
  torch::manual_seed(3);
  const auto net = fcn_resnet18({.num_classes = 5, .aux_loss = true});
  net->eval();
  const torch::NoGradGuard no_grad;
  const auto images = torch::randn({2, 3, 40, 33});
  const auto [out, aux] = net->forward_with_aux(images);
  EXPECT_TRUE(torch::equal(out, net->forward(images)));
  EXPECT_EQ(aux.sizes(), (Shape{2, 5, 40, 33}));
  EXPECT_FALSE(torch::equal(aux, out));
  EXPECT_TRUE(state_dict(*net).get("aux_classifier.4.bias").defined());
  EXPECT_EQ(net->aux_classifier->conv->options.in_channels(), 256);
}

TEST(AuxLoss, TrainsBothHeads) {
  const auto net = deeplabv3_resnet18({.num_classes = 3, .aux_loss = true});
  const auto images = torch::randn({2, 3, 32, 32});
  const auto targets = torch::randint(3, {2, 32, 32}, torch::kLong);
  torch::cross_entropy_loss(net->forward(images), targets).backward();
  EXPECT_FALSE(net->aux_classifier->last->weight.grad().defined());
  const auto [out, aux] = net->forward_with_aux(images);
  (torch::cross_entropy_loss(out, targets) +
   0.5 * torch::cross_entropy_loss(aux, targets))
      .backward();
  EXPECT_TRUE(net->aux_classifier->last->weight.grad().defined());
}

TEST(AuxLoss, IsRefusedWithoutASecondHead) {
  const Error none =
      error_of_call([] { (void)make_model("resnet18", {.aux_loss = true}); });
  EXPECT_EQ(none.detail, "E_MODEL_OPTION");
  EXPECT_EQ(none.message, "aux_loss: resnet18 has one head only");
  const auto net = fcn_resnet18();
  const Error absent = error_of_call([&] {
    (void)net->forward_with_aux(torch::zeros({1, 3, 8, 8}));
  });
  EXPECT_EQ(absent.detail, "E_MODEL_OPTION");
  EXPECT_THAT(absent.hint, HasSubstr(".aux_loss = true"));
}

struct CountedPooling : ASPPPoolingImpl {
  using ASPPPoolingImpl::ASPPPoolingImpl;
  at::Tensor forward(const at::Tensor& x) {
    ++calls;
    return ASPPPoolingImpl::forward(x);
  }
  int calls = 0;
};

// One number of each channel has no variance: LibTorch says so without a hint.
TEST(DeepLabV3, RefusesToTrainOnOneImage) {
  const auto net = deeplabv3_resnet18({.num_classes = 2});
  const auto image = torch::randn({1, 3, 32, 32});
  const Error error = error_of_call([&] { (void)net->forward(image); });
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.detail, "E_BATCH_OF_ONE");
  EXPECT_EQ(
      error.message,
      "Expected more than 1 value per channel when training, got input size "
      "torch.Size([1, 256, 1, 1])");
  net->eval();
  EXPECT_EQ(net->forward(image).sizes(), (Shape{1, 2, 32, 32}));
}

TEST(DeepLabV3, RefusesABranchThatItCannotCall) {
  const auto net = deeplabv3_resnet18({.num_classes = 2});
  auto& convs = net->classifier->aspp->convs;
  torch::nn::ModuleList other;
  for (std::size_t i = 0; i < convs->size(); ++i) {
    other->push_back(convs->ptr(i));
  }
  other->push_back(torch::nn::Linear(1, 1));
  convs = net->classifier->aspp->replace_module("convs", other);
  const Error error = error_of_call([&] {
    (void)net->forward(torch::randn({2, 3, 16, 16}));
  });
  EXPECT_THAT(error.message, HasSubstr("got Linear"));
}

// The forward of a branch is not virtual: a Sequential knows which to call.
TEST(DeepLabV3, CallsTheForwardOfABranchThatInheritsAnother) {
  auto net = deeplabv3_resnet18({.num_classes = 2});
  auto& convs = net->classifier->aspp->convs;
  const auto put_last = [&](const auto& branch) {
    torch::nn::ModuleList other;
    for (std::size_t i = 0; i + 1 < convs->size(); ++i) {
      other->push_back(convs->ptr(i));
    }
    other->push_back(branch);
    convs = net->classifier->aspp->replace_module("convs", other);
  };
  const auto branch = std::make_shared<CountedPooling>(512, 256);
  const auto images = torch::randn({2, 3, 16, 16});
  put_last(branch);
  const Error error = error_of_call([&] { (void)net->forward(images); });
  EXPECT_THAT(error.message, HasSubstr("CountedPooling"));
  put_last(torch::nn::Sequential(branch));
  (void)net->forward(images);
  EXPECT_EQ(branch->calls, 1);
}

TEST(Summary, ShowsTheHeads) {
  const auto net = make_model("deeplabv3_resnet18", {.num_classes = 21});
  const ModelSummary summary = summarize(*net, torch::zeros({1, 3, 64, 48}));
  std::vector<std::string> found;
  for (const LayerSummary& layer : summary.layers) {
    if (layer.name == "classifier.0.convs.4" || layer.name == "classifier.4" ||
        layer.name == "backbone.layer4.1.conv2" || layer.name.empty()) {
      found.push_back(
          layer.type + " " + torch::str(at::IntArrayRef(layer.output_shape)));
    }
  }
  EXPECT_THAT(
      found,
      ElementsAre(
          "DeepLabV3 [1, 21, 64, 48]",
          "Conv2d [1, 512, 8, 6]",
          "ASPPPooling [1, 256, 1, 1]",
          "Conv2d [1, 21, 8, 6]"));
}

} // namespace
} // namespace lockstep
