// SPDX-License-Identifier: BSD-3-Clause
//
// Which parameter is in which group; their numbers: step_hook_test.cpp.
#include "lockstep/train/step/param_groups.h"

#include <fstream>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/models/model.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::size_t> layers(const std::vector<NamedShape>& shapes) {
  return layers_of(shapes);
}

TEST(Layers, AreTheNumberedPartsInTheirOrder) {
  EXPECT_THAT(
      layers(
          {{"conv1.weight", 4},
           {"bn1.weight", 1},
           {"layer1.0.conv1.weight", 4},
           {"layer1.0.bn1.bias", 1},
           {"layer1.1.conv1.weight", 4},
           {"layer2.0.conv1.weight", 4},
           {"fc.weight", 2},
           {"fc.bias", 1}}),
      ElementsAre(0, 0, 1, 1, 2, 3, 4, 4));
  EXPECT_THAT(
      layers(
          {{"cls_token", 3},
           {"pos_embed", 3},
           {"patch_embed.proj.weight", 4},
           {"blocks.0.attn.qkv.weight", 2},
           {"blocks.1.attn.qkv.weight", 2},
           {"norm.weight", 1},
           {"head.weight", 2}}),
      ElementsAre(0, 0, 0, 1, 2, 2, 3));
  EXPECT_THAT(
      layers(
          {{"features.0.weight", 4},
           {"features.1.weight", 1},
           {"features.4.weight", 4},
           {"classifier.0.weight", 2}}),
      ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(layers({{"bn.weight", 1}, {"fc.weight", 2}}), ElementsAre(0, 0));
}

class ParamGroupsTest : public TrainerFixture {
 protected:
  static std::vector<std::string> names(const ParamGroup& group) {
    std::vector<std::string> found;
    for (const ckpt::Value& name :
         group.find("param_names")->as_list()->items) {
      found.emplace_back(name.text());
    }
    return found;
  }
  static Error refused(const std::function<void()>& call) {
    try {
      call();
    } catch (const Exception& exception) {
      return exception.error();
    }
    ADD_FAILURE() << "no error";
    return {};
  }
  std::string file(std::string_view text) {
    const std::string path = dir_ / "groups.yaml";
    std::ofstream(path) << text;
    return path;
  }
  std::vector<ParamGroup> groups(const std::string& rules) {
    TrainConfig config = small("run");
    config.param_groups = rules;
    return chosen_groups(config, *make_model("mlp"));
  }
};

TEST_F(ParamGroupsTest, TheFirstRuleThatMatchesCounts) {
  const std::string rules = resolved_param_groups(
      file("- match: [\"layers.1.*\", \"layers.3.weight\"]\n"
           "  lr_scale: 0.5\n"
           "- {match: \"*.bias\", weight_decay: 0}\n"),
      real_fs());
  EXPECT_EQ(
      rules,
      "[{match: [\"layers.1.*\", \"layers.3.weight\"], lr_scale: 0.5}, "
      "{match: [\"*.bias\"], lr_scale: 1.0, weight_decay: 0.0}]");
  EXPECT_EQ(resolved_param_groups(rules, real_fs()), rules);
  const auto found = groups(rules);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_THAT(
      names(found[0]),
      ElementsAre("layers.1.weight", "layers.1.bias", "layers.3.weight"));
  EXPECT_EQ(found[0].lr(), 0.025);
  EXPECT_EQ(found[0].number("weight_decay"), 1e-4);
  EXPECT_THAT(names(found[1]), ElementsAre("layers.3.bias", "layers.5.bias"));
  EXPECT_EQ(found[1].number("weight_decay"), 0);
  EXPECT_THAT(names(found[2]), ElementsAre("layers.5.weight"));
  EXPECT_THAT(groups_text(found), HasSubstr("the optimizer has 3 groups\n"));
}

TEST_F(ParamGroupsTest, ARuleOfNothingIsRefused) {
  const Error error = refused(
      [&] { groups("[{match: \"*.bias\"}, {match: \"layer.?.bias\"}]"); });
  EXPECT_EQ(error.detail, "E_GROUP_RULE");
  EXPECT_THAT(error.message, HasSubstr("rule 2"));
  EXPECT_THAT(error.hint, HasSubstr("layers.1.weight"));
  EXPECT_EQ(
      refused([&] { groups("[{match: \"*\"}, {match: \"*.bias\"}]"); }).detail,
      "E_GROUP_RULE");
}

TEST_F(ParamGroupsTest, FilesThatAreNoRulesNameThePlace) {
  const auto error = [&](std::string_view text) {
    const std::string path = file(text);
    const Error found =
        refused([&] { resolved_param_groups(path, real_fs()); });
    EXPECT_EQ(found.detail, "E_CONFIG_FILE");
    EXPECT_THAT(found.path, HasSubstr("groups.yaml:"));
    return found.message;
  };
  EXPECT_THAT(error("lr_scale: 1\n"), HasSubstr("a list of rules"));
  EXPECT_THAT(error("- {lr_scale: 1}\n"), HasSubstr("has no match"));
  EXPECT_THAT(error("- {match: a, lr: 1}\n"), HasSubstr("got 'lr'"));
  EXPECT_THAT(error("- {match: a, lr_scale: x}\n"), HasSubstr("a number"));
  EXPECT_THAT(error("- {match: a, lr_scale: -1}\n"), HasSubstr("a number"));
  EXPECT_THAT(error("- {match: []}\n"), HasSubstr("a pattern"));
  EXPECT_THAT(error("- [1\n"), HasSubstr("end of"));
  EXPECT_EQ(
      refused([&] { resolved_param_groups("no.yaml", real_fs()); }).code,
      ErrorCode::kNotFound);
}

TEST_F(ParamGroupsTest, ARunGoesOnWithTheGroupsOfItsCheckpoint) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  wanted.no_decay_norms = true;
  train(wanted);
  const auto group_count = [&] {
    const ckpt::Value saved = checkpoint("run");
    return saved.find("optimizer")->find("param_groups")->elements()->size();
  };
  EXPECT_EQ(group_count(), 2U);
  wanted.epochs = 2;
  wanted.no_decay_norms = false;
  wanted.layer_decay = 0.5;
  wanted.resume = wanted.output;
  RecordingLog log;
  train(wanted, {.log = &log});
  EXPECT_EQ(group_count(), 2U);
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      ::testing::AllOf(
          Contains(HasSubstr("--layer-decay 0.5: ignored")),
          Contains(HasSubstr("--no-decay-norms false: ignored"))));
}

TEST_F(ParamGroupsTest, WhatDoesNothingIsSaid) {
  TrainConfig wanted = uneven("run");
  wanted.epochs = 1;
  wanted.no_decay_norms = true;
  wanted.weight_decay = 0;
  RecordingLog log;
  train(wanted, {.log = &log});
  EXPECT_THAT(
      log.lines[LogLevel::kWarning],
      Contains(HasSubstr("--no-decay-norms has no effect")));
  EXPECT_THAT(
      log.lines[LogLevel::kInfo],
      Contains(HasSubstr("the optimizer has 2 groups")));
  wanted.layer_decay = 0.1;
  wanted.min_lr = 0.01;
  wanted.lr_scheduler = "cosineannealinglr";
  const Error error = refused([&] { train(wanted); });
  EXPECT_EQ(error.detail, "E_FLAGS");
  EXPECT_THAT(error.message, HasSubstr("--min-lr 0.01 is above the rate"));
}

} // namespace
} // namespace lockstep::train
