// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observers/env_observer.h"

#include <unistd.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/version.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep::train {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

class EnvObserverTest : public ::testing::Test {
 protected:
  EnvObserverTest() {
    fs_.create_directories("run").value();
  }
  json start(std::int64_t step, const TrainConfig& config = {}) {
    RunFiles files(fs_, [](const Error& error) { raise(error); });
    EnvObserver(files, "run", config)
        .on_start({.devices = {"cpu", "cpu"}, .step = step});
    return json::parse(read_text(fs_, "run/env.json").value());
  }
  MemoryFs fs_;
};

TEST_F(EnvObserverTest, SaysWithWhatAndOnWhatARunIsMade) {
  TrainConfig config;
  config.lr = 0.025;
  config.lr_milestones = {3, 5};
  const json env = start(0, config);
  EXPECT_EQ(env["lockstep"], kVersion);
  EXPECT_EQ(env["compiler"], kCompiler);
  EXPECT_THAT(env["torch"], MatchesRegex("[0-9]+\\.[0-9]+\\..*"));
  EXPECT_GE(env["cpu"]["cores"], 1);
  EXPECT_THAT(env["cpu"]["isa"], Not(IsEmpty()));
  EXPECT_GE(env["threads"], 1);
  EXPECT_EQ(env["devices"], json({"cpu", "cpu"}));
  EXPECT_EQ(env["pid"], ::getpid());
  EXPECT_THAT(env["os"], HasSubstr("Linux"));
  EXPECT_THAT(env["command"][0], HasSubstr("train_test"));
  EXPECT_THAT(env["started"], MatchesRegex("....-..-..T..:..:..Z"));
  EXPECT_EQ(env["args"]["lr"], 0.025);
  EXPECT_EQ(env["args"]["lr_milestones"], json({3, 5}));
  EXPECT_EQ(env["args"]["model"], "resnet18");
  EXPECT_EQ(env["args"]["nesterov"], false);
  EXPECT_FALSE(env["args"].contains("resume")) << "concerns one start only";
}

TEST_F(EnvObserverTest, ARunThatGoesOnKeepsEveryStart) {
  start(0);
  const json env = start(938);
  ASSERT_THAT(env["starts"], SizeIs(2));
  EXPECT_EQ(env["starts"][0]["step"], 0);
  EXPECT_EQ(env["starts"][1]["step"], 938);
  EXPECT_EQ(env["step"], 938) << "the newest start";
  EXPECT_EQ(env["starts"][1]["devices"], env["devices"]);
}

TEST_F(EnvObserverTest, AnEndBelongsToTheNewestStart) {
  start(0);
  start(938);
  RunFiles files(fs_, [](const Error& error) { raise(error); });
  EnvObserver observer(files, "run", {});
  const auto starts = [this] {
    return json::parse(read_text(fs_, "run/env.json").value())["starts"];
  };
  observer.on_end({.epochs = 3, .was_stopped = true});
  EXPECT_EQ(starts()[1]["end"]["how"], "interrupted");
  EXPECT_EQ(starts()[1]["end"]["epochs"], 3);
  EXPECT_FALSE(starts()[0].contains("end"));
  observer.on_failure({.message = "a \xff", .detail = "E_NO_SPACE"});
  EXPECT_EQ(starts()[1]["end"]["how"], "failed");
  EXPECT_EQ(starts()[1]["end"]["why"], "E_NO_SPACE");
  write_file_atomically(fs_, "run/env.json", "no json").value();
  observer.on_end({});
  EXPECT_EQ(read_text(fs_, "run/env.json").value(), "no json");
}

TEST(ShortReason, IsForATable) {
  const auto nan = [](const std::string& text) {
    return short_reason({.message = text, .detail = "E_NAN_LOSS"});
  };
  EXPECT_EQ(nan("the loss is nan in epoch 1, step 2 of 3"), "loss nan");
  EXPECT_EQ(nan("the loss is -inf in epoch 1"), "loss -inf");
  EXPECT_EQ(
      nan("the weights are not finite after step 3"),
      "weights not finite");
  EXPECT_EQ(
      nan("the loss of the test after epoch 2 is nan, with lr 1"),
      "loss nan");
  EXPECT_EQ(short_reason({.message = "x", .detail = "E_IO"}), "E_IO");
  EXPECT_EQ(short_reason({.message = "a b\nc"}), "a b");
}

TEST_F(EnvObserverTest, AFileThatIsNoneOfItsOwnListsNoStarts) {
  for (const std::string text : {"", "{\"starts\": 1}", "[]", "{\"starts\""}) {
    write_file_atomically(fs_, "run/env.json", text).value();
    EXPECT_THAT(start(0)["starts"], SizeIs(1)) << text;
  }
}

TEST_F(EnvObserverTest, AFullDiskIsToldOnceAndStopsNothing) {
  FaultFs full(fs_, {.error_number = 28, .byte_budget = 0});
  int warnings = 0;
  RunFiles files(full, [&](const Error& error) {
    ++warnings;
    EXPECT_THAT(error.path, HasSubstr("run/env.json"));
  });
  EnvObserver observer(files, "run", {});
  observer.on_start({});
  observer.on_start({});
  EXPECT_EQ(warnings, 1);
}

} // namespace
} // namespace lockstep::train
