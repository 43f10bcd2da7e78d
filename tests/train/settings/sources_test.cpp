// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>

#include "lockstep/base/error.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

Environment of(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt
                                    : std::optional(found->second);
  };
}

TEST(Sources, VariablesSetFlagsOfEachKind) {
  TrainConfig config;
  SettingSources sources;
  apply_environment(
      config,
      sources,
      of({{"LOCKSTEP_BATCH_SIZE", "64"},
          {"LOCKSTEP_NESTEROV", "true"},
          {"LOCKSTEP_LR_MILESTONES", "1,2"},
          {"LOCKSTEP_MODEL", ""},
          {"LOCKSTEP_UNKNOWN", "7"}}));
  EXPECT_EQ(config.batch_size, 64);
  EXPECT_TRUE(config.nesterov);
  EXPECT_EQ(config.lr_milestones, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(config.model, TrainConfig().model) << "an empty one is not set";
  EXPECT_EQ(sources.of(*find_key("batch_size")), "LOCKSTEP_BATCH_SIZE");
  EXPECT_EQ(sources.of(*find_key("model"), "default"), "default");
}

TEST(Sources, AWrongVariableIsNamed) {
  TrainConfig config;
  SettingSources sources;
  try {
    apply_environment(config, sources, of({{"LOCKSTEP_EPOCHS", "many"}}));
    ADD_FAILURE() << "taken";
  } catch (const Exception& error) {
    EXPECT_THAT(
        error.what(),
        AllOf(
            HasSubstr("--epochs: expected a whole number"),
            HasSubstr("(environment variable LOCKSTEP_EPOCHS)")));
    EXPECT_EQ(error.error().detail, "E_FLAG_VALUE");
  }
}

TEST(Sources, TheTableHasEverySettingWithItsSource) {
  TrainConfig config;
  SettingSources sources;
  config.lr = 0.5;
  sources.set(*find_key("lr"), "run.yaml:3");
  const std::string table = settings_table(config, sources);
  EXPECT_THAT(table, ContainsRegex("--lr +0.5 +run.yaml:3\n"));
  EXPECT_THAT(table, ContainsRegex("--epochs +20 +default\n"));
  EXPECT_THAT(table, ContainsRegex("--devices +- +default\n"));
  EXPECT_EQ(std::ranges::count(table, '\n'), std::ssize(flag_table()));
}

} // namespace
} // namespace lockstep::train
