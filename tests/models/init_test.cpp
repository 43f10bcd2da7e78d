// SPDX-License-Identifier: BSD-3-Clause
//
// Equal seeds give equal weights and equal scores in C++ and in Python.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "lockstep/models/classification.h"
#include "lockstep/models/model.h"
#include "tests/models/support.h"
#include "tests/support/python.h"

namespace lockstep {
namespace {

// The last line tells whether both sides drew equally often.
std::string weights(int seed, const std::string& name, ModelOptions options) {
  torch::manual_seed(seed);
  const std::shared_ptr<Model> net = name == "MyModule"
                                         ? std::make_shared<MyModule>()
                                         : make_model(name, options);
  const auto next = torch::randint(0, std::int64_t{1} << 62, {}, torch::kLong);
  return test::digest(*net) + name + " next " +
         std::to_string(next.item<std::int64_t>()) + "\n";
}

void expect_pythons_weights(
    int seed,
    const std::vector<std::string>& names,
    ModelOptions options) {
  std::vector<std::string> args{
      std::to_string(seed),
      std::to_string(options.num_classes),
      std::to_string(options.in_channels)};
  args.insert(args.end(), names.begin(), names.end());
  std::string ours;
  for (const std::string& name : names) {
    ours += weights(seed, name, options);
  }
  EXPECT_EQ(ours, test::run_python("models_digest.py", args));
}

const std::vector<std::string> kResNets{
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152"};
const std::vector<std::string> kSmall{"TheModelClass", "mlp", "MyModule"};
const std::vector<std::string> kVggs{
    "vgg11",
    "vgg13",
    "vgg16",
    "vgg19",
    "vgg11_bn",
    "vgg13_bn",
    "vgg16_bn",
    "vgg19_bn"};

class InitialWeightsBySeed : public testing::TestWithParam<int> {};

TEST_P(InitialWeightsBySeed, OfSmallModelsEqualPythons) {
  expect_pythons_weights(GetParam(), kSmall, {});
}

TEST_P(InitialWeightsBySeed, WithTheNotesEndsEqualPythons) {
  expect_pythons_weights(
      GetParam(),
      {"resnet18", "resnet50", "vgg11_bn", "TheModelClass", "mlp"},
      {.num_classes = 10, .in_channels = 1});
}

INSTANTIATE_TEST_SUITE_P(
    Seeds,
    InitialWeightsBySeed,
    testing::Values(0, 1, 1234));

// One seed tells whether the draws are in Python's order; those above draw from
// others, too.
TEST(InitialWeights, OfResNetsEqualPythons) {
  expect_pythons_weights(1, kResNets, {});
}

TEST(InitialWeights, OfVggsEqualPythons) {
  expect_pythons_weights(1234, kVggs, {});
}

TEST(Forward, GivesPythonsBitsInTrainAndEvalMode) {
  const std::vector<std::string> names{
      "resnet18",
      "resnet50",
      "vgg11_bn",
      "TheModelClass"};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const torch::NoGradGuard no_grad;
  std::string ours;
  for (const std::string& name : names) {
    torch::manual_seed(3);
    const auto net = make_model(name, {.num_classes = 10});
    const auto images = torch::randn({2, 3, 32, 32});
    for (const bool mode : {true, false}) {
      net->train(mode);
      ours += name + " " + test::digest(net->forward(images)) + "\n";
    }
  }
  at::set_num_threads(threads);
  std::vector<std::string> args{"3", "32"};
  args.insert(args.end(), names.begin(), names.end());
  EXPECT_EQ(ours, test::run_python("models_forward.py", args));
}

} // namespace
} // namespace lockstep
