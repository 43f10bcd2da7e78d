// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/flags.h"

#include <map>

#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::cli_train {
namespace {

using ::testing::HasSubstr;

// The settings that a command line gives.
train::TrainConfig parse(const std::vector<std::string>& args) {
  train::TrainConfig config;
  train::SettingSources sources;
  apply(parse_command_line(args), config, sources);
  return config;
}

std::string refused(const std::vector<std::string>& args) {
  try {
    parse(args);
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kInvalidArgument);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(Flags, BothSpellingsAndBothFormsOfAValue) {
  const auto expected = parse({"--batch-size", "64"}).batch_size;
  EXPECT_EQ(expected, 64);
  EXPECT_EQ(parse({"--batch_size=64"}).batch_size, 64);
  EXPECT_EQ(parse({"-b", "64"}).batch_size, 64);
  EXPECT_EQ(parse({"--seed", "-3"}).seed, -3);
}

TEST(Flags, ASwitchTakesAValueOnlyAfterEquals) {
  const auto config = parse({"--nesterov", "data"});
  EXPECT_TRUE(config.nesterov);
  EXPECT_EQ(config.data_dir, "data");
  EXPECT_FALSE(parse({"--nesterov=false"}).nesterov);
}

TEST(Flags, NoTurnsASwitchOff) {
  EXPECT_FALSE(parse({"--no-cuda"}).cuda);
  EXPECT_FALSE(parse({"--no_channels_last"}).channels_last);
  EXPECT_TRUE(parse({"--no-cuda", "--cuda"}).cuda);
  EXPECT_FALSE(parse({"--cuda", "--no-cuda"}).cuda);
  EXPECT_THAT(refused({"--no-epochs"}), HasSubstr("unknown flag"));
}

TEST(Flags, ABareArgumentIsTheDataFolder) {
  EXPECT_EQ(parse({"/data", "--epochs", "1"}).data_dir, "/data");
  EXPECT_EQ(parse({"--data-path", "/data"}).data_dir, "/data");
  EXPECT_EQ(parse({"/a", "--data-path", "/b"}).data_dir, "/b");
  EXPECT_THAT(refused({"/a", "/b"}), HasSubstr("got '/a' and '/b'"));
}

TEST(Flags, AnUnknownFlagNamesTheNearest) {
  EXPECT_EQ(
      refused({"--epoch", "3"}),
      "[train.flags] unknown flag '--epoch'. Hint: did you mean '--epochs'?");
  EXPECT_THAT(refused({"--batch_sise=3"}), HasSubstr("'--batch-size'?"));
  EXPECT_THAT(refused({"--zzzzzzzzzz"}), HasSubstr("--help"));
}

TEST(Flags, OfARepeatedFlagTheLastCounts) {
  EXPECT_EQ(parse({"--wd", "0.1", "--weight-decay", "0.2"}).weight_decay, 0.2);
  EXPECT_EQ(parse({"--lr", "0.5", "--epochs=2", "--lr=0.25"}).lr, 0.25);
  EXPECT_EQ(parse({"-b", "8", "--batch-size=4", "-b", "2"}).batch_size, 2);
}

TEST(Flags, AMissingValueIsRefused) {
  EXPECT_THAT(refused({"--epochs"}), HasSubstr("'--epochs' needs a value"));
}

// --resume "$RUN" with a variable that is not set.
TEST(Flags, AnEmptyValueIsRefused) {
  for (const train::Flag& flag : train::flag_table()) {
    if (!flag.is_switch()) {
      EXPECT_THAT(
          refused({format("--{}", flag.name), ""}),
          HasSubstr(format("--{} has an empty value", flag.name)));
    }
  }
  EXPECT_THAT(
      refused({"-c", ""}),
      HasSubstr("--config has an empty value; expected FILE"));
  EXPECT_THAT(refused({"--recipe="}), HasSubstr("--recipe has an empty value"));
  EXPECT_THAT(refused({"", "--lr=1"}), HasSubstr("expected the data folder"));
}

TEST(Flags, WordsWithoutAValueRefuseOne) {
  for (const std::string word :
       {"--no-nesterov",
        "--no_cuda",
        "--dry-run",
        "--explain",
        "--dump_config",
        "--help"}) {
    EXPECT_THAT(
        refused({word + "=false"}),
        HasSubstr(format("flag '{}' takes no value, got 'false'", word)));
  }
}

TEST(Flags, VariablesStandForGeneralFlagsThatAreNotTyped) {
  const auto line = [](const std::vector<std::string>& args,
                       std::map<std::string, std::string> variables) {
    return parse_command_line(
        args,
        [variables = std::move(variables)](const std::string& name) {
          const auto found = variables.find(name);
          return found == variables.end() ? std::nullopt
                                          : std::optional(found->second);
        });
  };
  const CommandLine both = line(
      {"--recipe=finetune"},
      {{"LOCKSTEP_CONFIG", "my.yaml"},
       {"LOCKSTEP_RECIPE", "from-scratch"},
       {"LOCKSTEP_DRY_RUN", "1"},
       {"LOCKSTEP_DUMP_CONFIG", "false"}});
  EXPECT_EQ(both.config_file, "my.yaml");
  EXPECT_EQ(both.recipe, "finetune");
  EXPECT_TRUE(both.wants_dry_run);
  EXPECT_FALSE(both.wants_dump);
  EXPECT_EQ(line({}, {{"LOCKSTEP_CONFIG", ""}}).config_file, "");
  EXPECT_TRUE(
      line({"--dry-run"}, {{"LOCKSTEP_DRY_RUN", "false"}}).wants_dry_run);
  EXPECT_THROW(line({}, {{"LOCKSTEP_DRY_RUN", "yes"}}), Exception);
}

TEST(Flags, VariablesThatNothingReadsAreSaid) {
  const std::vector<std::string> names{
      "LOCKSTEP_EPOCH",
      "LOCKSTEP_EXPLAIN",
      "LOCKSTEP_SCHED",
      "LOCKSTEP_CONFI",
      // Read, or of something else.
      "LOCKSTEP_EPOCHS",
      "LOCKSTEP_CONFIG",
      "LOCKSTEP_SIM_DEVICES",
      "LOCKSTEP_VISIBLE_DEVICES",
      "LOCKSTEP_PLUGIN_PATH",
      "LOCKSTEP_NCCL_LIBRARY",
      "EPOCH"};
  EXPECT_THAT(
      idle_variables(names),
      ::testing::ElementsAre(
          "LOCKSTEP_EPOCH has no effect: did you mean LOCKSTEP_EPOCHS?",
          "LOCKSTEP_EXPLAIN has no effect: did you mean LOCKSTEP_DRY_RUN?",
          "LOCKSTEP_SCHED has no effect: did you mean LOCKSTEP_LR_SCHEDULER?",
          "LOCKSTEP_CONFI has no effect: did you mean LOCKSTEP_CONFIG?"));
}

TEST(Flags, HelpListsEveryFlagAndEndsWithThreeExamples) {
  const std::string help = help_text();
  for (const std::string& spelling : train::flag_spellings()) {
    EXPECT_THAT(help, HasSubstr(spelling));
  }
  const auto examples = split(help.substr(help.find("\nExamples\n")), '\n');
  EXPECT_EQ(examples.size(), 6U) << "title, three lines, ends";
}

TEST(Flags, EachHelpGroupFitsAScreen) {
  constexpr int kLinesOfAScreen = 24;
  int lines = 0;
  for (const std::string& line : split(help_text(), '\n')) {
    EXPECT_LE(line.size(), 80U) << line;
    lines = line.empty() ? 0 : lines + 1;
    EXPECT_LE(lines, kLinesOfAScreen) << line;
  }
}

} // namespace
} // namespace lockstep::cli_train
