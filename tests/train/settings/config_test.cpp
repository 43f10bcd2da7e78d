// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/settings/config.h"

#include <set>

#include <gmock/gmock.h>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The error of setting `spelling` to `text`.
Error refused(std::string_view spelling, std::string_view text) {
  TrainConfig config;
  try {
    set_flag(config, *find_flag(spelling), text);
  } catch (const Exception& error) {
    EXPECT_EQ(config, TrainConfig{}) << "a refused value changed something";
    return error.error();
  }
  ADD_FAILURE() << spelling << " took '" << text << "'";
  return {};
}

TEST(Config, FindsEverySpellingOfAFlag) {
  const Flag* flag = find_flag("--batch-size");
  ASSERT_NE(flag, nullptr);
  EXPECT_EQ(find_flag("--batch_size"), flag);
  EXPECT_EQ(find_flag("-b"), flag);
  EXPECT_EQ(find_key("batch_size"), flag);
  EXPECT_EQ(find_flag("--wd"), find_flag("--weight_decay"));
  EXPECT_EQ(find_flag("-vb"), find_flag("--validation_batch-size"));
  EXPECT_EQ(find_flag("batch-size"), nullptr);
  EXPECT_EQ(find_flag("--batch"), nullptr);
}

TEST(Config, HasNoSpellingTwice) {
  const auto spellings = flag_spellings();
  const std::set<std::string> unique(spellings.begin(), spellings.end());
  EXPECT_EQ(unique.size(), spellings.size());
}

TEST(Config, EveryFlagReadsBackWhatItPrints) {
  TrainConfig config;
  for (const Flag& flag : flag_table()) {
    set_flag(config, flag, get_flag(config, flag));
  }
  EXPECT_EQ(config, TrainConfig{});
}

TEST(Config, SetsEachKind) {
  TrainConfig config;
  const auto set = [&](std::string_view spelling, std::string_view text) {
    set_flag(config, *find_flag(spelling), text);
  };
  set("--epochs", "3");
  set("--lr", "0.05");
  set("--nesterov", "true");
  set("--model", "vgg11");
  set("--lr-milestones", "30,60");
  set("--seed", "-1");
  EXPECT_EQ(config.epochs, 3);
  EXPECT_EQ(config.lr, 0.05);
  EXPECT_TRUE(config.nesterov);
  EXPECT_EQ(config.model, "vgg11");
  EXPECT_THAT(config.lr_milestones, ElementsAre(30, 60));
  EXPECT_EQ(config.seed, -1);
}

TEST(Config, RefusesBadValuesAndNamesTheFlag) {
  EXPECT_EQ(
      refused("--epochs", "many").message,
      "--epochs: expected a whole number, got 'many'");
  EXPECT_EQ(
      refused("-b", "0").message,
      "--batch-size: expected a whole number >= 1, got '0'");
  EXPECT_THAT(refused("--lr", "nan").message, HasSubstr("a number"));
  EXPECT_THAT(refused("--lr", "0.1x").message, HasSubstr("got '0.1x'"));
  EXPECT_THAT(refused("--momentum", "-0.5").message, HasSubstr(">= 0"));
  EXPECT_THAT(refused("--nesterov", "yes").message, HasSubstr("true or false"));
  EXPECT_EQ(
      refused("--opt", "lion").message,
      "--opt: expected sgd, adam, adamw, got 'lion'");
  EXPECT_EQ(refused("--opt", "").code, ErrorCode::kInvalidArgument);
}

} // namespace
} // namespace lockstep::train
