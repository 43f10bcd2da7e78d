// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep runs` over folders made by hand; tests/cli_train has a real run.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/internal/folder_lock.h"
#include "lockstep/base/strings.h"
#include "tests/cli/program.h"
#include "tests/support/no_locks.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep {
namespace {

using nlohmann::json;
using test::run_shell;
using testing::ElementsAre;
using testing::HasSubstr;

class Runs : public testing::Test {
 protected:
  Runs() {
    put("runs/a/env.json",
        R"({"lockstep":"0.1.0","devices":["cpu","cpu"],)"
        R"("args":{"model":"mlp","data":"mnist","epochs":2,"lr":0.1}})");
    put("runs/a/results.csv",
        "epoch,val_loss,val_top1,epoch_s\n1,0.5,81.5,10.5\n2,0.4,80.25,9.5\n");
    // As older versions wrote them: no env.json.
    put("runs/old/b/args.yaml", "model: \"resnet18\"\nlr: 0.2\nepochs: 5\n");
    put("runs/old/b/results.csv", "epoch,val_loss,val_top1\n1,0.6,70\n");
    put("runs/notes/readme.txt", "no run");
  }
  void put(const std::string& name, const std::string& text) {
    const std::filesystem::path path = dir_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  test::ShellOutcome run(const std::string& args) {
    return run_shell(
        "cd '" + dir_.path() + "'; '" + test::kProgram + "' runs " + args);
  }
  json runs(const std::string& args) {
    return json::parse(run("--json " + args).out)["result"];
  }
  const test::ScratchDir dir_;
};

TEST_F(Runs, ListsWhatIsBelowRuns) {
  const auto list = run("--sort name");
  EXPECT_EQ(list.status, 0) << list.err;
  const auto lines = split(list.out, '\n');
  ASSERT_EQ(lines.size(), 4U) << list.out;
  EXPECT_TRUE(lines[0].starts_with("run "));
  EXPECT_THAT(lines[1], HasSubstr("runs/a"));
  EXPECT_THAT(lines[1], HasSubstr("finished  2/2     top1 81.50"));
  EXPECT_THAT(lines[2], HasSubstr("runs/old/b"));
  EXPECT_THAT(lines[2], HasSubstr("resnet18"));
  EXPECT_THAT(lines[2], HasSubstr("stopped   1/5     top1 70.00"));
}

TEST_F(Runs, KnowsTheStateFromTheLock) {
  const json before = runs("runs/old/b")["runs"][0];
  EXPECT_EQ(before["state"], "stopped");
  {
    const auto lock = FolderLock::take(real_fs(), dir_ / "runs/old/b");
    ASSERT_TRUE(lock);
    EXPECT_EQ(runs("runs/old/b")["runs"][0]["state"], "running");
  }
  put("runs/old/b/.lock", "pid 1 on box since 2026-01-01 00:00:00 UTC\n");
  EXPECT_EQ(runs("runs/old/b")["runs"][0]["state"], "killed");
  EXPECT_EQ(test::file_text(dir_ / "runs/old/b/.lock").substr(0, 5), "pid 1");
}

TEST_F(Runs, WhatMayNotBeReadIsUnknown) {
  put("runs/old/b/.lock", "");
  std::filesystem::permissions(
      dir_ / "runs/old/b/.lock",
      std::filesystem::perms::none);
  // Root may read anything, but not without these capabilities.
  const auto list = run_shell(format(
      "cd '{}'; {} '{}' runs",
      dir_.path(),
      ::geteuid() == 0 ? "setpriv --bounding-set -dac_override,-dac_read_search"
                       : "",
      test::kProgram));
  EXPECT_THAT(list.out, HasSubstr("unknown   1/5")) << list.err;
}

TEST_F(Runs, WithoutLocksTheTextOfTheLockIsAllThatIsKnown) {
  const auto list = [this] {
    return test::where_locks_fail(ENOLCK, [this] { return run("").out; });
  };
  put("runs/old/b/.lock", "pid 1 on box since 2026-01-01 00:00:00 UTC\n");
  EXPECT_THAT(list(), HasSubstr("unknown   1/5"));
  put("runs/old/b/.lock", "");
  EXPECT_THAT(list(), HasSubstr("stopped   1/5"));
}

TEST_F(Runs, ComparesRunsThatAreNamed) {
  const auto both = run("runs/a runs/old/b");
  EXPECT_EQ(both.status, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("lr         0.1         0.2\n"));
  EXPECT_THAT(both.out, HasSubstr("model      mlp         resnet18\n"));
  EXPECT_THAT(both.out, HasSubstr("best       top1 81.50  top1 70.00\n"));
  const json result = runs("runs/a runs/old/b");
  EXPECT_THAT(
      result["differing"].get<std::vector<std::string>>(),
      ElementsAre("data", "epochs", "lr", "model"));
  EXPECT_EQ(result["runs"][0]["seconds"], 20.0);
  EXPECT_EQ(result["runs"][0]["devices"], "cpu,cpu");
  EXPECT_TRUE(result["runs"][1]["seconds"].is_null());
}

TEST_F(Runs, HasOneNumberForTheBest) {
  put("runs/own/env.json",
      R"({"args":{"model":"own:Net","data":"own:Points","epochs":2}})");
  put("runs/own/results.csv",
      "epoch,train_loss,val_loss,val_top1\n1,0.9,0.5,\n2,0.8,0.6,\n");
  put("runs/untested/results.csv",
      "epoch,train_loss,val_loss,val_top1\n1,nan,,\n2,0.8,,\n");
  const auto list = run("--sort name");
  const auto lines = split(list.out, '\n');
  EXPECT_THAT(lines[0], HasSubstr("epochs  best               time"));
  EXPECT_THAT(lines[1], HasSubstr("2/2     top1 81.50         20.0 s"));
  EXPECT_THAT(lines[3], HasSubstr("own:Net   own:Points"));
  EXPECT_THAT(lines[3], HasSubstr("2/2     loss 0.5000"));
  EXPECT_THAT(lines[4], HasSubstr("train_loss 0.8000"));
  const json result = runs("runs/own runs/untested")["runs"];
  EXPECT_EQ(result[0]["best"], 0.5);
  EXPECT_EQ(result[0]["best_by"], "val_loss");
  EXPECT_EQ(result[1]["best"], 0.8);
  EXPECT_EQ(result[1]["best_by"], "train_loss");
}

TEST_F(Runs, SaysWhyARunEndedAndOnHowManyRanks) {
  const auto put_end = [this](const std::string& end, int ranks) {
    put("runs/a/env.json",
        format(
            R"({{"devices":["cpu"],"ranks":{},"args":{{"epochs":9}},)"
            R"("starts":[{{"end":{{"how":"finished"}}}},{{{}}}]}})",
            ranks,
            end));
    return run("--sort name").out;
  };
  EXPECT_THAT(
      put_end(
          R"("end":{"how":"failed","why":"loss nan","message":"the loss"})",
          2),
      HasSubstr("cpu x 2 ranks  failed: loss nan  2/9"));
  const json failed = runs("runs/a")["runs"][0];
  EXPECT_EQ(failed["state"], "failed");
  EXPECT_EQ(failed["why"], "loss nan");
  EXPECT_EQ(failed["error"], "the loss");
  EXPECT_EQ(failed["ranks"], 2);
  EXPECT_THAT(
      put_end(R"("end":{"how":"interrupted","why":""})", 1),
      HasSubstr("cpu      interrupted  2/9"));
  EXPECT_THAT(
      put_end(R"("end":{"how":"finished","why":"no new best in 3 epochs"})", 1),
      HasSubstr("finished: no new best in 3 epochs  2/9"));
  // A start without an end: nothing is known but from the lock.
  EXPECT_THAT(put_end("", 1), HasSubstr("stopped  2/9"));
  put("runs/a/.lock", "pid 1 on box since 2026-01-01 00:00:00 UTC\n");
  EXPECT_THAT(put_end("", 1), HasSubstr("killed   2/9"));
  const auto lock = FolderLock::take(real_fs(), dir_ / "runs/a");
  EXPECT_THAT(
      put_end(R"("end":{"how":"failed","why":"loss nan"})", 1),
      HasSubstr("running  2/9"));
}

TEST_F(Runs, WritesThePageAnew) {
  put("runs/a/metrics.jsonl",
      R"({"event":"epoch","epoch":1,"step":5,"train_loss":1,"val_loss":2})"
      "\n");
  put("runs/a/log.txt", "warning: <odd>\n");
  EXPECT_EQ(run("runs --html --sort name").status, 0);
  const std::string page = test::file_text(dir_ / "runs/a/report.html");
  EXPECT_THAT(page, HasSubstr("<title>runs/a - Lockstep</title>"));
  EXPECT_THAT(page, HasSubstr("state finished"));
  EXPECT_THAT(page, HasSubstr("Loss by epoch"));
  EXPECT_THAT(page, HasSubstr("warning: &lt;odd&gt;"));
  EXPECT_THAT(
      test::file_text(dir_ / "runs/old/b/report.html"),
      HasSubstr("state stopped"));
  std::filesystem::remove(dir_ / "runs/a/report.html");
  std::filesystem::create_directory(dir_ / "runs/a/report.html");
  EXPECT_EQ(run("runs/a --html").status, 4) << "what cannot be written";
}

TEST_F(Runs, ShowsWhatChoseTheBestEpoch) {
  put("runs/mask/env.json",
      R"({"args":{"epochs":3},"best_by":"val_miou","better":"higher"})");
  put("runs/mask/results.csv",
      "epoch,train_loss,val_loss,val_miou\n1,0.9,0.5,0.7\n2,0.8,0.6,0.25\n"
      "3,0.7,nan,0.9\n");
  put("runs/price/env.json",
      R"({"args":{"epochs":2},"best_by":"val_mae","better":"lower"})");
  put("runs/price/results.csv",
      "epoch,train_loss,val_loss,val_mae\n1,0.9,0.5,12.5\n2,0.8,0.6,13\n");
  EXPECT_THAT(run("--sort name").out, HasSubstr("miou 0.7000"));
  EXPECT_THAT(
      run("runs/mask runs/price").out,
      HasSubstr("best       miou 0.7000  mae 12.50"));
  const json result = runs("runs/mask runs/price")["runs"];
  EXPECT_EQ(result[0]["best"], 0.7);
  EXPECT_EQ(result[1]["best"], 12.5);
  EXPECT_EQ(result[1]["best_by"], "val_mae");
}

TEST_F(Runs, SortsByWhatIsAskedFor) {
  const json best = runs("--sort best")["runs"];
  EXPECT_EQ(best[0]["path"], "runs/a");
  EXPECT_EQ(runs("--sort best --sort name")["runs"][1]["path"], "runs/old/b")
      << "of two equal flags the last one counts";
  const json time = runs("--sort time")["runs"];
  EXPECT_EQ(time[0]["path"], "runs/a");
  EXPECT_EQ(run("--sort size").status, 2);
}

TEST_F(Runs, BrokenFilesLeaveTheirFactsOut) {
  put("runs/a/env.json", "{\"args\": [");
  put("runs/a/results.csv", "epoch,val_top1\n1,x\n2");
  const json broken = runs("runs/a")["runs"][0];
  EXPECT_EQ(broken["epochs_done"], 1);
  EXPECT_TRUE(broken["best"].is_null());
  EXPECT_EQ(broken["args"].size(), 0U);
}

TEST_F(Runs, CountsEpochsByTheirNumbers) {
  put("runs/a/results.csv", "epoch,val_top1\n4,60\n5,61\n");
  EXPECT_EQ(runs("runs/a")["runs"][0]["epochs_done"], 5);
  for (const char* odd : {"nan", "1e300", "-1"}) {
    put("runs/a/results.csv", format("epoch,val_top1\n{},60\n", odd));
    EXPECT_EQ(runs("runs/a")["runs"][0]["epochs_done"], 0) << odd;
  }
}

TEST_F(Runs, TheBestIsANumber) {
  const std::string header = "epoch,train_loss,val_loss,val_top1\n";
  for (const char* text : {"nan,81.5", "81.5,nan", "inf,81.5", "-nan,81.5"}) {
    const auto two = split(text, ',');
    put("runs/a/results.csv",
        format("{}1,0,0,{}\n2,0,0,{}\n", header, two[0], two[1]));
    EXPECT_EQ(runs("runs/a")["runs"][0]["best"], 81.5) << text;
  }
  for (const char* text :
       {"1,2.3,2.3,nan\n", "1,nan,2.3,9\n", "1,2.3,nan,9\n"}) {
    put("runs/a/results.csv", header + text);
    EXPECT_TRUE(runs("runs/a")["runs"][0]["best"].is_null()) << text;
  }
  EXPECT_TRUE(runs("runs/a")["runs"][0]["test_loss"].is_null()) << "of nan";
  // A field that is no number moves no other row.
  put("runs/a/results.csv", header + "1,2,,15\n2,2,nan,90\n3,2,2,20\n");
  EXPECT_EQ(runs("runs/a")["runs"][0]["best"], 20);
}

TEST_F(Runs, LinksInACircleAreFollowedOnce) {
  std::filesystem::create_directory_symlink("..", dir_ / "runs/notes/up");
  std::filesystem::create_directory_symlink("../a", dir_ / "runs/notes/again");
  EXPECT_EQ(runs("runs")["runs"].size(), 2U);
}

TEST_F(Runs, WithoutAnyRunsTheAnswerSaysSo) {
  EXPECT_EQ(run("runs/notes").status, 4);
  EXPECT_THAT(run("runs/notes").err, HasSubstr("no run folders"));
  EXPECT_EQ(run("nowhere").status, 4);
}

} // namespace
} // namespace lockstep
