// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep train` over the ranks that `lockstep run` starts.
#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"
#include "tests/support/trace_file.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RanksTest : public testing::Test {
 protected:
  test::ShellOutcome shell(const std::string& command) {
    return test::run_shell(format(
        "export PATH={}/bin:$PATH TMPDIR={} OMP_NUM_THREADS=1; cd {}; {}",
        LOCKSTEP_BINARY_DIR,
        dir_.path(),
        dir_.path(),
        command));
  }
  /// A training run of a second.
  static std::string train(const std::string& flags) {
    return "lockstep train --model mlp --threads 1 --max-train-samples 480 "
           "--max-eval-samples 99 --batch-size 48 --lr 0.05 " +
           flags;
  }
  static std::string ranks(int count, const std::string& command) {
    return format("lockstep run --nproc-per-node {} {}", count, command);
  }
  /// The last row of results.csv, by column.
  double last(const std::string& folder, const std::string& column) {
    const auto lines =
        split(test::file_text(dir_ / (folder + "/results.csv")), '\n');
    const auto names = split(lines.front(), ',');
    const auto values = split(lines[lines.size() - 2], ',');
    const auto found = std::ranges::find(names, column);
    EXPECT_NE(found, names.end()) << lines.front();
    return std::stod(values[static_cast<std::size_t>(found - names.begin())]);
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return dir_ / name;
  }

 private:
  test::ScratchDir dir_;
};

TEST_F(RanksTest, TrainAsOneProcessDoes) {
  const auto alone = shell(train("--epochs 2 --output alone"));
  ASSERT_EQ(alone.status, 0) << alone.err;
  const auto both = shell(ranks(2, train("--epochs 2 --output both")));
  ASSERT_EQ(both.status, 0) << both.err;
  EXPECT_THAT(
      both.out,
      AllOf(StartsWith("2 epochs, best Acc@1 "), EndsWith(", both\n")));
  EXPECT_THAT(both.err, HasSubstr("batch 48 over 2 ranks"));
  for (const char* column : {"train_loss", "val_loss"}) {
    EXPECT_NEAR(last("both", column), last("alone", column), 1e-4) << column;
  }
  EXPECT_EQ(last("both", "val_top1"), last("alone", "val_top1"));
  EXPECT_FALSE(std::filesystem::exists(path("both-2"))); // one rank writes
  const auto keys = shell("lockstep ckpt ls both/checkpoint.pth.tar");
  EXPECT_THAT(keys.out, Not(HasSubstr("module.")));
}

// Three ranks show what two hide: where a number lies in a bucket.
TEST_F(RanksTest, GoOnWithTheSameBits) {
  ASSERT_EQ(shell(ranks(3, train("--epochs 3 --output whole"))).status, 0);
  ASSERT_EQ(shell(ranks(3, train("--epochs 2 --output parts"))).status, 0);
  const auto resumed =
      shell(ranks(3, train("--epochs 3 --resume parts/checkpoint.pth.tar")));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  const auto same = shell(
      "lockstep ckpt diff whole/checkpoint.pth.tar parts/checkpoint.pth.tar");
  EXPECT_EQ(same.status, 0) << same.out << same.err;
  // And in another number of processes.
  const auto alone = shell(train("--epochs 4 --resume parts"));
  EXPECT_EQ(alone.status, 0) << alone.err;
  EXPECT_THAT(alone.err, HasSubstr("distributed"));
}

TEST_F(RanksTest, AllStopOnASignalAndGoOn) {
  const auto stopped = shell(
      ranks(2, train("--epochs 5000 --output run")) +
      " & for i in $(seq 600); do [ -e run/results.csv ] && break; "
      "sleep 0.1; done; kill -TERM $!; wait $!");
  EXPECT_EQ(stopped.status, 75) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("lockstep train --resume run"));
  // The epoch that it was stopped in is the one that it ends with.
  const auto resumed = shell(
      "epoch=$(($(wc -l < run/results.csv)));" +
      ranks(2, "lockstep train --resume run --epochs $epoch"));
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resumed run/checkpoint"));
}

TEST_F(RanksTest, StartedAgainTheyStayInTheirFolder) {
  const std::string job = train("--epochs 9 --name exp");
  const auto outcome = shell(format(
      "timeout 120 lockstep run --nproc-per-node 2 --max-restarts 1 sh -c '"
      "if [ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ]; then {0} & "
      "until [ -e runs/exp/checkpoint.pth.tar ]; do sleep 0.05; done; "
      "kill -9 $! $$; fi; exec {0}'",
      job));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("restart 1 of 1"));
  EXPECT_THAT(outcome.err, HasSubstr("resumed "));
  EXPECT_EQ(shell("ls runs; ls -d runs/exp/*/").out, "exp\n");
  EXPECT_EQ(last("runs/exp", "epoch"), 9);
}

/// What one of two ranks with a run folder each finds in it.
struct Difference {
  std::string name = {};
  /// Makes folder 1 from folder 0, which holds a run of two ranks.
  std::string command = {};
  std::string text = {};
};

class RanksDiffer : public RanksTest,
                    public testing::WithParamInterface<Difference> {};

// Not refused, they would train different weights, or wait for each other.
TEST_P(RanksDiffer, InWhatTheyGoOnFrom) {
  ASSERT_EQ(shell(ranks(2, train("--epochs 2 --output run0"))).status, 0);
  ASSERT_EQ(shell(GetParam().command).status, 0);
  const auto outcome = shell(format(
      "timeout 60 lockstep run --nproc-per-node 2 sh -c '{}'",
      train("--epochs 3 --resume auto --output run$RANK")));
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_THAT(
      outcome.err,
      AllOf(
          HasSubstr("rank 0 goes on from checkpoint-00000020.pth.tar at epoch "
                    "3, step 20, sample 0, best Acc@1 "),
          HasSubstr(GetParam().text),
          HasSubstr("E_RANKS_RESUME")));
  EXPECT_EQ(last("run0", "epoch"), 2);
}

INSTANTIATE_TEST_SUITE_P(
    Folders,
    RanksDiffer,
    testing::Values(
        Difference{
            "NoRun",
            "true",
            "in its folder; rank 1 begins anew. Hint: all ranks must see"},
        Difference{
            "OlderCheckpoint",
            "cp -r run0 run1 && truncate -s 999 "
            "run1/checkpoint-00000020.pth.tar",
            "rank 1 goes on from checkpoint-00000010.pth.tar at epoch 2"}),
    [](const auto& param) { return param.param.name; });

// As a user writes it: nothing in it says that there are ranks.
TEST_F(RanksTest, AProgramWithATrainerTrainsAsOneJob) {
  const auto outcome = shell(
      ranks(2, std::string(LOCKSTEP_BINARY_DIR) + "/bin/examples/own_trainer"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path("own_run-2"))) << "one rank writes";
  EXPECT_THAT(
      test::file_text(path("own_run/log.txt")),
      HasSubstr("batch 32 over 2 ranks"));
  EXPECT_EQ(last("own_run", "step"), 40) << "4 epochs of 320 images by 32";
  EXPECT_EQ(last("own_run", "samples"), 1280);
  // Each rank's observer is told of each epoch.
  const auto lines = split(outcome.out, '\n');
  EXPECT_EQ(
      std::ranges::count_if(
          lines,
          [](const std::string& line) {
            return line.ends_with("320 images in 10 steps, lr 0.01");
          }),
      2)
      << outcome.out;
}

// One file, with a process for each rank.
TEST_F(RanksTest, ATraceShowsAllRanks) {
  const std::string flags = "--epochs 1 --profile 2 --output ";
  const auto outcome = shell(ranks(2, train(flags + "traced")));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("trace.json shows 2 steps"));
  const test::TraceFile found =
      test::read_trace(test::file_text(path("traced/trace.json")));
  EXPECT_EQ(found.misplaced(), "");
  EXPECT_THAT(found.processes, testing::ElementsAre("rank 0", "rank 1"));
  for (const int rank : {0, 1}) {
    const auto fourth = found.named("ProfilerStep#4", "main", rank);
    ASSERT_THAT(fourth, testing::SizeIs(1)) << rank;
    EXPECT_THAT(
        found.named("ProfilerStep#5", "main", rank),
        testing::SizeIs(1));
    EXPECT_THAT(
        found.named("ProfilerStep#6", "main", rank),
        testing::SizeIs(0));
    const auto sums = found.named("all_reduce", "collectives", rank);
    EXPECT_TRUE(std::ranges::any_of(sums, [&](const auto& sum) {
      return fourth.front().holds(sum);
    })) << rank;
  }
  // Both ranks' clocks are one: each step ends with an exchange.
  EXPECT_LT(
      found.named("ProfilerStep#4", "main", 0).front().start,
      found.named("ProfilerStep#5", "main", 1).front().end);
  EXPECT_LT(
      found.named("ProfilerStep#4", "main", 1).front().start,
      found.named("ProfilerStep#5", "main", 0).front().end);
  // And the weights are those of a run without it.
  ASSERT_EQ(shell(ranks(2, train("--epochs 1 --output plain"))).status, 0);
  const auto same = shell(
      "lockstep ckpt diff traced/checkpoint.pth.tar plain/checkpoint.pth.tar");
  EXPECT_EQ(same.status, 0) << same.out << same.err;
}

// Their weights would part, and nothing would say so.
TEST_F(RanksTest, AllHaveTheSameSettings) {
  const auto outcome = shell(format(
      "lockstep run --nproc-per-node 2 sh -c '[ $RANK = 0 ] || "
      "export LOCKSTEP_LR=0.3 LOCKSTEP_WORKERS=1; exec {}'",
      "lockstep train --model mlp --max-train-samples 48 --output run"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(
      outcome.err,
      HasSubstr(
          "ranks 0 and 1 have different settings: '--lr 0.1' and '--lr 0.3'. "
          "Hint: start all ranks with the same flags"));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

// They gather what they recorded: one alone would wait for ever.
TEST_F(RanksTest, AllProfileAsManySteps) {
  const auto outcome = shell(format(
      "lockstep run --nproc-per-node 2 sh -c '[ $RANK = 0 ] || "
      "export LOCKSTEP_PROFILE=2; exec {}'",
      "lockstep train --model mlp --max-train-samples 48 --output run"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("'--profile 0' and '--profile 2'"));
}

// Also on the first signal: nothing is lost yet.
TEST_F(RanksTest, OneThatWaitsForOthersEndsAtOnce) {
  const auto outcome = shell(
      "lockstep run --nproc-per-node 2 --shutdown-timeout 60 sh -c '"
      "[ $RANK = 1 ] && sleep 2 && exit 3; exec lockstep train --model mlp'");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.err, Not(HasSubstr("did not end within")));
}

struct Refusal {
  std::string name = {};
  std::string flags = {};
  std::string text = {};
};

class Refused : public RanksTest,
                public testing::WithParamInterface<Refusal> {};

TEST_P(Refused, OnAllRanks) {
  const auto outcome =
      shell(ranks(2, "lockstep train --model mlp " + GetParam().flags));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().text));
  EXPECT_FALSE(std::filesystem::exists(path("runs")));
}

INSTANTIATE_TEST_SUITE_P(
    Flags,
    Refused,
    testing::Values(
        Refusal{
            "Batch",
            "--batch-size 51",
            "--batch-size 51 over 2 ranks leaves a rest. Hint: 50 or 52 works"},
        Refusal{
            "Devices",
            "--devices cpu*3",
            "3 devices are named for 2 ranks on this machine"},
        Refusal{
            "Strategy",
            "--strategy single",
            "--strategy single trains in one process"}),
    [](const auto& param) { return param.param.name; });

// The others' errors follow from it.
TEST_F(RanksTest, TheRankThatCannotWriteIsNamedFirst) {
  const auto outcome =
      shell("touch file; " + ranks(3, train("--output file/x")));
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("first failure: rank 0 "));
}

TEST_F(RanksTest, OneProcessMayBeARankToo) {
  const auto outcome = shell(train("--strategy ddp --output run"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("(distributed)"));
  const auto two = shell(train("--strategy ddp --devices 'cpu*2'"));
  EXPECT_EQ(two.status, 2);
  EXPECT_THAT(two.err, HasSubstr("2 devices are named for 1 rank on this"));
}

} // namespace
} // namespace lockstep
