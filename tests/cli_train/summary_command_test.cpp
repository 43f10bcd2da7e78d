// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/cli_train/process.h"
#include "tests/support/json_schema.h"
#include "tests/support/shell.h"

namespace lockstep::cli_train {
namespace {

using nlohmann::json;
using test::Process;
using ::testing::HasSubstr;

TEST(SummaryCommand, PrintsATable) {
  Process program({"summary", "resnet18", "--img-size", "64"});
  EXPECT_EQ(program.wait(), 0) << program.errors();
  EXPECT_THAT(program.output(), HasSubstr("ResNet"));
  EXPECT_THAT(program.output(), HasSubstr("[1, 64, 32, 32]"));
  EXPECT_THAT(program.output(), HasSubstr("Total params: 11,689,512\n"));
}

TEST(SummaryCommand, PrintsJson) {
  Process program(
      {"summary",
       "resnet18",
       "--img_size=32",
       "--batch-size=2",
       "--num-classes=10",
       "--in-channels=1",
       "--json"});
  EXPECT_EQ(program.wait(), 0) << program.errors();
  const json document = json::parse(program.output());
  EXPECT_EQ(document["schema"], "lockstep.summary/1");
  EXPECT_EQ(test::violation_of_its_schema(document), "");
  const json& result = document["result"];
  EXPECT_EQ(result["params"], 11'175'370) << "one channel, ten classes";
  EXPECT_EQ(result["input_shape"], json({2, 1, 32, 32}));
  EXPECT_EQ(result["layers"][0]["output_shape"], json({2, 10}));
}

TEST(SummaryCommand, OfTwoEqualFlagsTheLastOneCounts) {
  Process program(
      {"summary", "resnet18", "--batch_size", "7", "--batch-size=2", "--json"});
  EXPECT_EQ(program.wait(), 0) << program.errors();
  EXPECT_EQ(
      json::parse(program.output())["result"]["input_shape"],
      json({2, 3, 224, 224}));
}

TEST(SummaryCommand, AFullDiskIsNoSuccess) {
  for (const char* args :
       {"summary mlp",
        "bench --help",
        "train --help",
        "--version",
        "train --model mlp --test-only --max-eval-samples 64"}) {
    const auto outcome = test::run_shell(
        std::string(LOCKSTEP_BINARY_DIR "/bin/lockstep-train ") + args +
        " >/dev/full");
    EXPECT_EQ(outcome.status, 4) << args;
    EXPECT_THAT(outcome.err, HasSubstr("took only a part of the text"));
  }
}

TEST(SummaryCommand, AnUnknownCommandAnswersInJson) {
  Process program({"sumary", "mlp", "--json"});
  EXPECT_EQ(program.wait(), 2);
  const json document = json::parse(program.output());
  EXPECT_EQ(document["schema"], "lockstep.args/1");
  EXPECT_EQ(test::violation_of_its_schema(document), "");
}

TEST(SummaryCommand, EveryMistakeIsNamed) {
  struct Row {
    std::vector<std::string> args;
    std::string text;
  };
  const std::vector<Row> rows{
      {{}, "no model is named"},
      {{"resnet"}, "no model is called 'resnet'"},
      {{"resnet18", "vgg19"}, "'vgg19' is left over"},
      {{"resnet18", "--img-sizes", "3"}, "did you mean '--img-size'?"},
      {{"resnet18", "--img-size", "0"}, "expected a whole number of 1 or more"},
      {{"resnet18", "--img-size"}, "flag '--img-size' needs a value"},
      {{"vgg19", "--img-size", "8"}, "takes images of at least 32 x 32, got 8"},
      {{"TheModelClass", "--img-size", "28"}, "of 32 x 32 only, got 28"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> args{"summary"};
    args.insert(args.end(), row.args.begin(), row.args.end());
    Process program(args);
    EXPECT_EQ(program.wait(), 2) << row.text;
    EXPECT_THAT(program.errors(), HasSubstr(row.text));
  }
}

TEST(SummaryCommand, EveryModelHasAUsualSize) {
  for (const std::string name :
       {"mlp", "TheModelClass", "vgg11", "unet_small"}) {
    Process program({"summary", name});
    EXPECT_EQ(program.wait(), 0) << program.errors();
  }
}

TEST(SummaryCommand, HelpListsTheModels) {
  Process program({"summary", "--help"});
  EXPECT_EQ(program.wait(), 0);
  EXPECT_THAT(program.output(), HasSubstr("  vgg19_bn\n"));
}

} // namespace
} // namespace lockstep::cli_train
