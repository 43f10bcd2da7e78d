// SPDX-License-Identifier: BSD-3-Clause
//
// print(model), byte for byte.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"
#include "lockstep/tensor/modules.h"
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

} // namespace
} // namespace lockstep
