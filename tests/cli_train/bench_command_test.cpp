// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "cli_train/machine_peak.h"
#include "tests/cli_train/process.h"
#include "tests/support/json_schema.h"

namespace lockstep::cli_train {
namespace {

using nlohmann::json;
using test::Process;
using ::testing::HasSubstr;

std::vector<std::string> small_bench(std::vector<std::string> more) {
  std::vector<std::string> args{
      "bench",
      "resnet18",
      "--img-size=28",
      "--in-channels=1",
      "--num-classes=10",
      "--batch-size=16",
      "--threads=1",
      "--steps=2"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(BenchCommand, PrintsTheStepAndItsLayers) {
  Process program(small_bench({"--compare", "torch"}));
  EXPECT_EQ(program.wait(), 0) << program.errors();
  for (const char* part :
       {"resnet18, 16 images of 1 x 28 x 28, float32, 1 thread\n",
        "images/s",
        "channels last",
        "packed",
        "torch takes ",
        "GFLOP/s of float32 multiplications",
        "layer4.1.conv2",
        "BatchNorm2d",
        "max_pool2d"}) {
    EXPECT_THAT(program.output(), HasSubstr(part));
  }
  EXPECT_EQ(program.errors(), "");
}

TEST(BenchCommand, PrintsJson) {
  Process program(small_bench(
      {"--kernels=torch", "--channels-last", "--amp=bf16", "--json"}));
  EXPECT_EQ(program.wait(), 0) << program.errors();
  const json document = json::parse(program.output());
  EXPECT_EQ(document["schema"], "lockstep.bench/1");
  EXPECT_EQ(test::violation_of_its_schema(document), "");
  const json& result = document["result"];
  EXPECT_EQ(result["amp"], "bf16");
  // Two gradients and a forward pass of 33,014,272 multiplications an image,
  // but no gradient of the first layer's images.
  EXPECT_NEAR(
      result["operations"].get<double>(),
      16 * 2 * (3 * 33'014'272.0 - 614'656),
      16 * 2 * 3 * 33'014'272.0 * 0.01);
  ASSERT_EQ(result["sides"].size(), 1);
  const json& side = result["sides"][0];
  EXPECT_EQ(side["kernels"], "torch");
  EXPECT_EQ(side["channels_last"], true);
  EXPECT_EQ(side["step_seconds"].size(), 2);
  double layers = 0;
  for (const json& layer : side["layers"]) {
    EXPECT_EQ(layer["kernels"].size(), 0) << layer;
    layers += layer["forward_seconds"].get<double>() +
              layer["backward_seconds"].get<double>();
  }
  EXPECT_GT(layers, 0);
}

// Backward runs in another thread there.
TEST(BenchCommand, MeasuresADevice) {
  Process program(
      small_bench({"--devices=sim*1", "--kernels=torch", "--json"}));
  EXPECT_EQ(program.wait(), 0) << program.errors();
  const json document = json::parse(program.output());
  EXPECT_EQ(test::violation_of_its_schema(document), "");
  const json& result = document["result"];
  EXPECT_EQ(result["device"], "sim:0");
  EXPECT_GT(result["peak_after"].get<double>(), 0);
  EXPECT_GT(result["peak_memory_bytes"].get<double>(), 40e6) << "11M weights";
  for (const json& layer : result["sides"][0]["layers"]) {
    if (layer["type"] == "Conv2d") {
      EXPECT_GT(layer["forward_seconds"].get<double>(), 0) << layer;
      EXPECT_GT(layer["backward_seconds"].get<double>(), 0) << layer;
    }
  }
  Process words(small_bench({"--devices=sim*1", "--kernels=torch"}));
  EXPECT_EQ(words.wait(), 0) << words.errors();
  EXPECT_THAT(words.output(), HasSubstr("float32, sim:0\n"));
  EXPECT_THAT(words.output(), HasSubstr("GFLOP/s of float32 matrix products"));
}

TEST(BenchCommand, TakesOneDevice) {
  Process two(small_bench({"--devices=cpu*2"}));
  EXPECT_EQ(two.wait(), 2);
  EXPECT_THAT(two.errors(), HasSubstr("expected one device, got 2"));
  Process tuned(small_bench({"--devices=sim*1", "--tune"}));
  EXPECT_EQ(tuned.wait(), 2);
  EXPECT_THAT(tuned.errors(), HasSubstr("are for the CPU"));
}

TEST(BenchCommand, TuneTimesEveryWayOfEachConvolution) {
  Process program(small_bench({"--tune", "--json"}));
  EXPECT_EQ(program.wait(), 0) << program.errors();
  const json document = json::parse(program.output());
  EXPECT_EQ(document["schema"], "lockstep.tune/1");
  EXPECT_EQ(test::violation_of_its_schema(document), "");
  const json& result = document["result"];
  EXPECT_EQ(result["channels_last"], true);
  EXPECT_EQ(result["other_convolutions"], 0);
  EXPECT_GE(result["chosen_seconds"], result["best_seconds"]);
  std::int64_t convolutions = 0;
  for (const json& one : result["convolutions"]) {
    convolutions += one["count"].get<std::int64_t>();
    // Nobody asks for the gradient of the images.
    EXPECT_EQ(
        one["passes"].contains("input gradient"),
        one["weight"][1] != 1) // of channels
        << one;
    for (const json& algorithms : one["passes"]) {
      EXPECT_EQ(
          std::ranges::count_if(
              algorithms,
              [](const json& algorithm) {
                return algorithm["chosen"].get<bool>();
              }),
          1)
          << one;
      EXPECT_EQ(algorithms[0]["algorithm"], "exact");
    }
  }
  EXPECT_EQ(convolutions, 20);
}

TEST(BenchCommand, TuneShowsWhatIsChosen) {
  Process program(small_bench({"--tune", "--amp=bf16", "--kernels=torch"}));
  EXPECT_EQ(program.wait(), 0) << program.errors();
  for (const char* part :
       {"resnet18, 16 images of 1 x 28 x 28, amp bf16, 1 thread\n",
        "convolution               layers             pass ",
        "512 -> 512, 3x3 on 1x1         3          forward ",
        "64 -> 128, 3x3/2 on 7x7        1          forward ",
        "* ",
        "that is chosen (packed maps)",
        "convolutions of a step: "}) {
    EXPECT_THAT(program.output(), HasSubstr(part));
  }
  EXPECT_EQ(program.errors(), "");
}

TEST(BenchCommand, TuneSaysThatThereIsNothingToTune) {
  Process program({"bench", "mlp", "--tune", "--batch-size=2", "--steps=1"});
  EXPECT_EQ(program.wait(), 0) << program.errors();
  EXPECT_THAT(
      program.output(),
      HasSubstr("\n\nno convolution can be computed otherwise\n"));
}

TEST(BenchCommand, EveryMistakeIsNamed) {
  struct Mistake {
    std::vector<std::string> args;
    std::string text;
  };
  const std::vector<Mistake> rows{
      {{}, "no model is named"},
      {{"resnet18", "--step", "3"}, "did you mean '--steps'?"},
      {{"resnet18", "--steps", "0"}, "expected a whole number of 1 or more"},
      {{"resnet18", "--kernels", "fast"},
       "--kernels: expected lockstep, exact, torch, got 'fast'"},
      {{"resnet18", "--threads", "100000"},
       "--threads: expected at most 1024, got '100000'"},
      {{"resnet18", "--amp", "fp16"},
       "--amp: expected off, bf16, auto, got 'fp16'"},
      {{"resnet18", "--compare", "lockstep"}, "expected other kernels"},
      {{"resnet18", "--compare", "torch", "--tune"},
       "--tune compares every algorithm with LibTorch's"},
      {{"resnet18", "--json=yes"}, "flag '--json' takes no value, got 'yes'"},
  };
  for (const auto& row : rows) {
    std::vector<std::string> args{"bench"};
    args.insert(args.end(), row.args.begin(), row.args.end());
    Process program(args);
    EXPECT_EQ(program.wait(), 2) << row.text;
    EXPECT_THAT(program.errors(), HasSubstr(row.text));
  }
}

TEST(BenchCommand, OneImageOfOnePixelIsTheUsersMistake) {
  Process program({"bench", "resnet18", "--img-size=1", "--batch-size=1"});
  EXPECT_EQ(program.wait(), 2);
  EXPECT_THAT(program.errors(), HasSubstr("or another batch size"));
}

TEST(BenchCommand, AMistakeIsJsonToo) {
  Process program({"bench", "nope", "--json"});
  EXPECT_EQ(program.wait(), 2);
  const json document = json::parse(program.output());
  EXPECT_EQ(test::violation_of_its_schema(document), "");
  EXPECT_EQ(document["error"]["code"], "E_MODEL_NAME");
}

// Which layers those are is for kernels_test to say; here, that they are named.
TEST(BenchCommand, NamesTheKernels) {
  auto args = small_bench({"--kernels=lockstep", "--json"});
  *std::ranges::find(args, "--batch-size=16") = "--batch-size=128";
  Process program(args);
  EXPECT_EQ(program.wait(), 0) << program.errors();
  const json document = json::parse(program.output());
  for (const json& layer : document["result"]["sides"][0]["layers"]) {
    if (layer["name"] == "layer4.1.conv2") {
      EXPECT_EQ(layer["kernels"], json({"direct"}));
    }
    if (layer["type"] == "BatchNorm2d") {
      EXPECT_EQ(layer["kernels"], json({"batch_norm"})) << layer["name"];
    }
  }
}

// Bounds that no processor and no busy machine comes near.
TEST(MachinePeak, IsARateOfOneAndOfSeveralThreads) {
  for (const int threads : {1, 2, 3}) {
    EXPECT_GT(measure_peak(threads), 1e8) << threads;
    EXPECT_LT(measure_peak(threads), threads * 1e12) << threads;
  }
}

} // namespace
} // namespace lockstep::cli_train
