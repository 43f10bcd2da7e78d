// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/checkpoints/config_file.h"

#include <gmock/gmock.h>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TrainConfig unusual() {
  TrainConfig config;
  config.model = "vgg11_bn";
  config.data_dir = "/data/with: colon \"and\" quotes";
  config.lr = 0.1 + 0.2;
  config.weight_decay = 5e-4;
  config.nesterov = true;
  config.lr_milestones = {3, 5};
  config.max_train_samples = 1280;
  return config;
}

std::string refused(const std::string& text) {
  TrainConfig config;
  try {
    apply_yaml(config, text, "my.yaml");
  } catch (const Exception& error) {
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

TEST(ConfigFile, YamlRoundTripKeepsEverySavedSetting) {
  TrainConfig read;
  apply_yaml(read, to_yaml(unusual()), "args.yaml");
  EXPECT_EQ(read, unusual());
}

TEST(ConfigFile, YamlHoldsFlatKeysAndNoPlaces) {
  TrainConfig config = unusual();
  config.output = "runs/x";
  config.resume = "auto";
  const std::string text = to_yaml(config);
  EXPECT_THAT(text, HasSubstr("\nbatch_size: 128\n"));
  EXPECT_THAT(text, HasSubstr("\nlr_milestones: [3, 5]\n"));
  EXPECT_THAT(text, Not(HasSubstr("output")));
  EXPECT_THAT(text, Not(HasSubstr("resume")));
}

TEST(ConfigFile, YamlTakesHyphensAndListsWithoutBrackets) {
  TrainConfig config;
  apply_yaml(config, "batch-size: 7\nlr_milestones: 1,2\n", "my.yaml");
  EXPECT_EQ(config.batch_size, 7);
  EXPECT_EQ(config.lr_milestones, (std::vector<std::int64_t>{1, 2}));
}

TEST(ConfigFile, YamlErrorsSayWhere) {
  EXPECT_THAT(
      refused("lr: 0.1\nepoch: 3\n"),
      AllOf(
          HasSubstr("unknown setting 'epoch' (my.yaml:2:1)"),
          HasSubstr("did you mean 'epochs'?")));
  EXPECT_THAT(refused("lr: [0.1\n"), HasSubstr("my.yaml:"));
  EXPECT_THAT(refused("- 1\n- 2\n"), HasSubstr("key: value"));
  EXPECT_THAT(refused("epochs: soon\n"), HasSubstr("--epochs"));
}

TEST(ConfigFile, ArgsRoundTripThroughPlainValues) {
  const ckpt::Value args = to_args(unusual());
  ASSERT_NE(args.find("nesterov"), nullptr);
  EXPECT_NE(args.find("nesterov")->as_bool(), nullptr);
  EXPECT_NE(args.find("lr")->as_float(), nullptr);
  EXPECT_NE(args.find("epochs")->as_int(), nullptr);
  EXPECT_EQ(args.find("resume"), nullptr);
  TrainConfig read;
  apply_args(read, args);
  EXPECT_EQ(read, unusual());
}

TEST(ConfigFile, ArgsOfAnotherProgramAreIgnoredWhereUnknown) {
  TrainConfig config;
  apply_args(
      config,
      ckpt::Value::dict(
          {{"epochs", 7}, {"world_size", 4}, {"data_dir", ckpt::None{}}}));
  EXPECT_EQ(config.epochs, 7);
  EXPECT_EQ(config.data_dir, "");
}

TEST(ConfigFile, ArgsWithABadValueAreRefused) {
  TrainConfig config;
  EXPECT_THROW(
      apply_args(config, ckpt::Value::dict({{"batch_size", -3}})),
      Exception);
}

} // namespace
} // namespace lockstep::train
