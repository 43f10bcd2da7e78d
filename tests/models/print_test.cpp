// SPDX-License-Identifier: BSD-3-Clause
//
// print(model), byte for byte.
#include "lockstep/tensor/print.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/models/registry.h"
#include "lockstep/models/small.h"
#include "tests/support/python.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

TEST(Print, ShowsModelsAsPython) {
  std::vector<std::string> args{"10", "1"};
  std::string ours;
  for (const char* name :
       {"resnet18", "resnet50", "vgg16_bn", "vgg11", "TheModelClass", "mlp"}) {
    args.emplace_back(name);
    ours +=
        to_string(*make_model(name, {.num_classes = 10, .in_channels = 1})) +
        "\n";
  }
  EXPECT_EQ(ours, test::run_python("models_print.py", args));
}

TEST(Print, ShowsTheNotesModel) {
  EXPECT_EQ(
      to_string(TheModelClass()),
      R"(TheModelClass(
  (conv1): Conv2d(3, 6, kernel_size=(5, 5), stride=(1, 1))
  (pool): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
  (conv2): Conv2d(6, 16, kernel_size=(5, 5), stride=(1, 1))
  (fc1): Linear(in_features=400, out_features=120, bias=True)
  (fc2): Linear(in_features=120, out_features=84, bias=True)
  (fc3): Linear(in_features=84, out_features=10, bias=True)
))");
}

// The wrapper's class is not known here: it gives its name to Module.
struct Wrapper : nn::Module {
  explicit Wrapper(std::shared_ptr<nn::Module> inner)
      : nn::Module("DataParallel") {
    register_module("module", std::move(inner));
  }
};

TEST(Print, ShowsAWrapperByTheNameItGives) {
  EXPECT_EQ(
      to_string(Wrapper(make_model("resnet18"))) + "\n" +
          to_string(Wrapper(std::make_shared<MyModule>())) + "\n",
      test::run_python(
          "models_print.py",
          {"1000", "3", "wrapped:resnet18", "wrapped:MyModule"}));
}

TEST(Print, ShowsNamedLayersOfASequential) {
  nn::Sequential net(
      {{"conv1", nn::AnyModule(nn::Conv2d(1, 20, 5))},
       {"relu1", nn::AnyModule(nn::ReLU())}});
  EXPECT_EQ(
      to_string(*net),
      "Sequential(\n"
      "  (conv1): Conv2d(1, 20, kernel_size=(5, 5), stride=(1, 1))\n"
      "  (relu1): ReLU()\n)");
}

struct Net : nn::Module {
  Net() {
    const auto twin = [] { return nn::Sequential(nn::ReLU(), nn::ReLU()); };
    register_module(
        "list",
        nn::ModuleList(nn::ReLU(), nn::ReLU(), nn::Linear(2, 3), nn::ReLU()));
    register_module("empty", nn::Sequential());
    register_module("none", nn::ModuleList());
    register_module("twice", nn::ModuleList(twin(), twin()));
  }
};

template <class... Holders>
std::string lines(const Holders&... modules) {
  return ((to_string(*modules) + "\n") + ...);
}

std::string convolutions() {
  return lines(
      nn::Conv1d(1, 2, 3),
      nn::Conv2d(1, 20, 5),
      nn::Conv2d(nn::Conv2dOptions(4, 8, {3, 5})
                     .stride({1, 2})
                     .padding({1, 0})
                     .dilation({2, 1})
                     .groups(2)
                     .bias(false)
                     .padding_mode(torch::kReflect)),
      nn::Conv2d(nn::Conv2dOptions(1, 2, 3).padding(torch::kSame)),
      nn::Conv3d(nn::Conv3dOptions(1, 2, 3).stride(2)),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(2, 4, 3)
                              .stride(2)
                              .padding(1)
                              .output_padding(1)
                              .bias(false)),
      nn::Linear(3, 5),
      nn::Linear(nn::LinearOptions(3, 5).bias(false)));
}

std::string norms() {
  return lines(
      nn::BatchNorm1d(3),
      nn::BatchNorm2d(64),
      nn::BatchNorm2d(nn::BatchNormOptions(4)
                          .eps(1e-3)
                          .momentum(std::nullopt)
                          .affine(false)
                          .track_running_stats(false)),
      nn::BatchNorm3d(nn::BatchNormOptions(2).momentum(0.25)),
      nn::InstanceNorm2d(4),
      nn::GroupNorm(2, 4),
      nn::LayerNorm(nn::LayerNormOptions({8})),
      nn::LayerNorm(
          nn::LayerNormOptions({4, 8}).eps(1e-6).elementwise_affine(false)));
}

std::string activations() {
  return lines(
      nn::ReLU(),
      nn::ReLU(nn::ReLUOptions(true)),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2).inplace(true)),
      nn::Sigmoid(),
      nn::Tanh(),
      nn::GELU(),
      nn::SiLU(),
      nn::Softmax(1),
      nn::LogSoftmax(-1),
      nn::Dropout(),
      nn::Dropout(nn::DropoutOptions(0.25).inplace(true)),
      nn::Dropout2d(0.1));
}

std::string pools() {
  return lines(
      nn::MaxPool1d(2),
      nn::MaxPool2d(nn::MaxPool2dOptions(2).stride(2)),
      nn::MaxPool2d(
          nn::MaxPool2dOptions({3, 2}).stride({2, 1}).padding({1, 0}).ceil_mode(
              true)),
      nn::AvgPool2d(2),
      nn::AdaptiveAvgPool1d(1),
      nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({7, 7})),
      nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({std::nullopt, 3})),
      nn::AdaptiveMaxPool2d(nn::AdaptiveMaxPool2dOptions({2, 2})),
      nn::Flatten(),
      nn::Identity(),
      nn::Embedding(10, 3),
      nn::Embedding(nn::EmbeddingOptions(10, 3).padding_idx(1)),
      nn::CrossEntropyLoss(),
      nn::MSELoss(),
      nn::Sequential(nn::Linear(1, 2), nn::ReLU()),
      std::make_shared<Net>());
}

TEST(Print, ShowsEveryLayerOfTheTableAsPython) {
  EXPECT_EQ(
      convolutions() + norms() + activations() + pools(),
      test::run_python("models_zoo.py"));
}

} // namespace
} // namespace lockstep
