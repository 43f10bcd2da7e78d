// SPDX-License-Identifier: BSD-3-Clause
//
// What is asked for seldom, and must not be answered wrongly.
#include <filesystem>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/ckpt/core/quantizer.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/cli/command_test.h"
#include "tests/support/json_schema.h"

namespace lockstep {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class OddRequests : public test::CommandTest {};

TEST_F(OddRequests, ScanOfNothingFromAPipeIsNotClean) {
  EXPECT_EQ(run("scan - </dev/null"), 3);
  EXPECT_THAT(text("out.txt"), StartsWith("unreadable"));
  EXPECT_EQ(shell("printf text >t.pt"), 0);
  EXPECT_EQ(run("scan - <t.pt"), 3);
  EXPECT_EQ(run("scan t.pt"), 3) << "the same of a file";
}

TEST_F(OddRequests, NamesAreNeverCut) {
  put("tiny.pt", "tiny.pt");
  const auto tiny = ckpt::load(path("tiny.pt")).value();
  ckpt::save(
      path("m.pt"),
      ckpt::Value::dict({{"a\n\n\n\nbcdef", *tiny.root.find("w")}}))
      .value();
  EXPECT_EQ(run("ls --names m.pt"), 0);
  EXPECT_EQ(text("out.txt"), "a\\x0a\\x0a\\x0a\\x0abcdef\n");
  EXPECT_EQ(run("digest --lines m.pt"), 0);
  EXPECT_THAT(text("out.txt"), HasSubstr("a\\n\\n\\n\\nbcdef\t"));
}

TEST_F(OddRequests, TwoWaysToPrintAreRefused) {
  put("tiny.pt", "m.pt");
  for (const char* args :
       {"show --csv --json m.pt w",
        "show --npy --json m.pt w",
        "scan --sarif --json m.pt"}) {
    EXPECT_EQ(run(args), 2) << args;
    const auto answer = nlohmann::json::parse(text("out.txt"));
    EXPECT_EQ(test::violation_of_its_schema(answer), "");
    EXPECT_THAT(text("err.txt"), HasSubstr(" excludes --json"));
  }
}

// 2 stands for 0 where the zero point is 2.
TEST_F(OddRequests, NumbersOfQuantizedTensorsAreSaidToBeIntegers) {
  auto tensor = ckpt::tensor_of<std::int8_t>(ckpt::DType::kQInt8, {2, 4}, {2});
  tensor.quantizer = std::make_shared<ckpt::Value>(
      ckpt::quantizer_value({.scale = 0.5, .zero_point = 2}));
  ckpt::save(path("q.pt"), ckpt::Value::dict({{"fc", tensor}})).value();
  EXPECT_EQ(run("show q.pt fc"), 0);
  EXPECT_THAT(
      text("out.txt"),
      HasSubstr("quantizer  scale 0.5, zero point 2; below are the integers"));
  for (const char* args :
       {"show q.pt fc --csv", "show q.pt fc --npy", "show q.pt --stats"}) {
    EXPECT_EQ(run(args), 0) << args;
    EXPECT_EQ(
        text("err.txt"),
        "warning: quantized; the numbers are the stored integers: 'fc'\n");
  }
}

// Two of quint4x2 share a byte: no row of numbers has a place for them.
TEST_F(OddRequests, ElementsThatShareBytesAreNotExported) {
  auto tensor = ckpt::tensor_of<std::uint8_t>(
      ckpt::DType::kQUInt4x2,
      {1, 2, 3, 4},
      {2, 4});
  tensor.quantizer =
      std::make_shared<ckpt::Value>(ckpt::quantizer_value({.scale = 1}));
  ckpt::save(path("q.pt"), ckpt::Value::dict({{"fc", tensor}})).value();
  for (const char* args : {"show q.pt fc --csv", "show q.pt fc --npy"}) {
    EXPECT_EQ(run(args), 3) << args;
    EXPECT_EQ(text("out.txt"), "");
    EXPECT_THAT(
        text("err.txt"),
        HasSubstr("quint4x2 has 2 elements in a byte"));
  }
}

TEST_F(OddRequests, ViewsAreGivenTheCommandThatCopiesThem) {
  const ckpt::Tensor tensor = ckpt::floats({1, 2});
  ckpt::Tensor first = tensor;
  first.sizes = {1};
  ckpt::save(path("m.pt"), ckpt::Value::dict({{"a", tensor}, {"first", first}}))
      .value();
  EXPECT_NE(run("convert m.pt a.npz"), 0);
  EXPECT_THAT(
      text("err.txt"),
      HasSubstr("'lockstep ckpt convert --clone-views' writes each tensor"));
}

TEST_F(OddRequests, TwoFilesToWriteAreRefused) {
  put("tiny.pt", "m.pt");
  for (const char* args :
       {"convert m.pt a.npz -o b.npz",
        "repair m.pt a.pt -o b.pt",
        "strip m.pt a.pt --output b.pt",
        "optim m.pt a.pt -o b.pt --to python",
        "extract-model m.pt a.pt -o b.pt",
        "average m.pt m.pt -o a.pt -o b.pt",
        "pick m.pt w -o a.pt -o b.pt"}) {
    EXPECT_EQ(run(args), 2) << args;
    EXPECT_THAT(text("err.txt"), HasSubstr("two files to write, 'a.")) << args;
  }
  for (const char* name : {"a.npz", "b.npz", "a.pt", "b.pt"}) {
    EXPECT_FALSE(std::filesystem::exists(path(name))) << name;
  }
}

// The parser would take the next word.
TEST_F(OddRequests, FlagsThatEndInAnEqualsSignAreRefused) {
  put("tiny.pt", "m.pt");
  for (const char* args :
       {"convert m.pt o.npz --dtype= --force",
        "convert m.pt o.npz --to=",
        "show --head= m.pt w"}) {
    EXPECT_EQ(run(args), 2) << args;
    EXPECT_THAT(text("err.txt"), HasSubstr("= has no value")) << args;
  }
  EXPECT_EQ(run("ls --max-depth=True -- m.pt"), 2);
  EXPECT_THAT(text("err.txt"), HasSubstr("whole number, got 'True'"));
}

TEST_F(OddRequests, NumbersBelowZeroAreRefused) {
  put("tiny.pt", "m.pt");
  for (const char* args :
       {"show --head -1 m.pt w",
        "ls --depth -1 m.pt",
        "diff --rtol -1 m.pt m.pt",
        "diff --atol nan m.pt m.pt"}) {
    EXPECT_EQ(run(args), 2) << args;
    EXPECT_THAT(text("err.txt"), HasSubstr("expected a number from 0 on"));
  }
  EXPECT_EQ(run("diff --rtol 1e-3 m.pt m.pt"), 0);
}

TEST_F(OddRequests, AFolderMayEndInASlash) {
  put("tiny.pt", "m.pt");
  EXPECT_EQ(run("convert m.pt new/ --to dcp"), 0) << text("err.txt");
  EXPECT_EQ(run("diff m.pt new"), 0);
  EXPECT_EQ(run("convert m.pt new/ --to dcp"), 2) << "it is there now";
  EXPECT_EQ(run("convert m.pt / --to dcp"), 2);
}

TEST_F(OddRequests, VerifyOfAFolderMissesShards) {
  put("dataparallel.pt", "m.pt");
  EXPECT_EQ(shell("mkdir shards"), 0);
  ASSERT_EQ(run("convert m.pt shards/s.safetensors --shard 100B"), 0)
      << text("err.txt");
  EXPECT_EQ(run("verify shards"), 0) << text("out.txt");
  EXPECT_EQ(shell("rm shards/s-00001-*"), 0);
  EXPECT_EQ(run("verify shards"), 4);
  EXPECT_THAT(text("out.txt"), HasSubstr("is missing"));
}

TEST_F(OddRequests, EditsOfWhatHasNoKeysSayWhatHelps) {
  put("whole_model.pt", "m.pt");
  EXPECT_EQ(run("drop m.pt 0.weight -o x.pt"), 4);
  EXPECT_THAT(
      text("err.txt"),
      testing::AllOf(
          HasSubstr("neither an entry nor a weight of one: '0.weight'"),
          HasSubstr("extract-model")));
}

TEST_F(OddRequests, TheHintForARunIsItsNewestCheckpoint) {
  EXPECT_EQ(shell("mkdir run"), 0);
  put("tiny.pt", "run/checkpoint-00000008.pth.tar");
  put("tiny.pt", "run/checkpoint.pth.tar");
  EXPECT_EQ(run("ls run"), 3);
  EXPECT_THAT(text("err.txt"), HasSubstr("in it: run/checkpoint.pth.tar"));
}

} // namespace
} // namespace lockstep
