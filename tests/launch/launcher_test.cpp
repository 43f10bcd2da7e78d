// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep run` with ranks that are shell scripts: what happens to them, and
// that none is left.
#include "lockstep/launch/internal/launcher.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep::launch {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Launcher : public testing::Test {
 protected:
  /// Runs `command` in an empty folder; `lockstep` is in PATH.
  test::ShellOutcome shell(const std::string& command) {
    return test::run_shell(format(
        "wait_for() {{ n=0; until [ -s $1 -a -s $2 ]; do sleep 0.05; "
        "n=$((n+1)); [ $n -lt 1000 ] || exit 99; done; }}; "
        "export PATH={}/bin:$PATH TMPDIR={} OMP_NUM_THREADS=1; cd {}; {}",
        LOCKSTEP_BINARY_DIR,
        dir_.path(),
        dir_.path(),
        command));
  }
  /// `lockstep run FLAGS` of ranks that run `script`.
  test::ShellOutcome run(const std::string& flags, const std::string& script) {
    return shell(format("lockstep run {} sh -c '{}'", flags, script));
  }
  /// States of the processes that the files name, once those that were killed
  /// have had a moment to go; zombies are dead.
  std::string alive(const std::string& files) {
    return shell(format(
                     "for i in $(seq 200); do "
                     "ps -o stat= -p $(cat {} | paste -sd,) | grep -v Z > left "
                     "|| break; sleep 0.05; done; cat left",
                     files))
        .out;
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    return test::file_text(dir_ / name);
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(dir_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  test::ScratchDir dir_;
};

TEST_F(Launcher, StartsEveryRankOnce) {
  const auto outcome =
      run("--nproc-per-node 3",
          "echo $RANK $WORLD_SIZE $0 $1 >> $RANK.txt' --flag_of_program 'b c");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const std::string rank : {"0", "1", "2"}) {
    EXPECT_EQ(text(rank + ".txt"), rank + " 3 --flag_of_program b c\n");
  }
  EXPECT_THAT(files(), testing::SizeIs(3)); // no logs
}

TEST_F(Launcher, TakesTorchrunsUsualLine) {
  const auto outcome =
      run("--nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint localhost:0",
          "echo $MASTER_ADDR; test $MASTER_PORT -gt 0");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "localhost\n");
}

TEST_F(Launcher, FillsInTorchrunsMacros) {
  const auto outcome = shell(
      "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE='${hostname}/${rank}: ' "
      "lockstep run --nproc-per-node 2 --tee 3 --log-dir logs "
      "echo '${local_rank}-${local_rank}' '$local_rank' '$$'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const std::string rank : {"0", "1"}) {
    const std::string host = shell("printf %s $(uname -n)").out;
    EXPECT_THAT(
        outcome.out,
        HasSubstr(format("{0}/{1}: {1}-{1} $local_rank $$\n", host, rank)));
  }
}

TEST_F(Launcher, EndsWhereItsParentIgnoresSigchld) {
  const auto outcome = shell(
      "timeout -s KILL 60 env --ignore-signal=CHLD "
      "lockstep run --nproc-per-node 2 sh -c 'exit 3'");
  EXPECT_EQ(outcome.status, 3) << outcome.err;
}

TEST_F(Launcher, StartsAsManyRanksAsThereAreCoresForIt) {
  const auto outcome = shell(
      "taskset -c $(taskset -cp $$ | sed 's/.*: //; s/[,-].*//') "
      "lockstep run --nproc-per-node cpu echo x");
  EXPECT_EQ(outcome.out, "x\n") << outcome.err;
}

TEST_F(Launcher, TeesWithTheRankInFront) {
  const auto outcome = run(
      "--nproc-per-node 2 --tee 3 --log-dir logs --rdzv-id job --role trainer",
      "echo out; echo err >&2; printf last");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const std::string rank : {"0", "1"}) {
    EXPECT_THAT(outcome.out, HasSubstr(format("[trainer{}]:out\n", rank)));
    EXPECT_THAT(outcome.out, HasSubstr(format("[trainer{}]:last\n", rank)));
    EXPECT_THAT(outcome.err, HasSubstr(format("[trainer{}]:err\n", rank)));
    EXPECT_EQ(
        shell(format("cat logs/job_*/attempt_0/{}/stdout.log", rank)).out,
        "out\nlast");
    EXPECT_EQ(
        shell(format("cat logs/job_*/attempt_0/{}/stderr.log", rank)).out,
        "err\n");
  }
}

TEST_F(Launcher, TeesAllOfItToASlowReader) {
  const auto outcome = shell(
      "lockstep run --nproc-per-node 2 --tee 3 seq 200000 | "
      "(sleep 0.3; sort -u | wc -l)");
  EXPECT_EQ(outcome.out, "400000\n") << outcome.err;
}

// Ranks that print without end, to a console that stopped to read.
class Unread : public Launcher {
 protected:
  /// Starts two ranks that run `script`, waits until they can print no more,
  /// then runs `command`; 9 is the console, $! what to end or to wait for.
  test::ShellOutcome run_unread(
      const std::string& script,
      const std::string& command) {
    return shell(format(
        "is_full() {{ size=$(cat logs/*/*/*/stdout.log | wc -c); sleep 0.3; "
        "[ $size -gt 0 -a $size = $(cat logs/*/*/*/stdout.log | wc -c) ]; }}; "
        "mkfifo out; exec 9<>out; timeout -s KILL 60 lockstep run "
        "--nproc-per-node 2 --tee 3 --log-dir logs sh -c '{}' >out 2>&1 & "
        "wait_for 0.pid 1.pid; until is_full; do :; done; {}",
        script,
        command));
  }
};

TEST_F(Unread, ASignalEndsIt) {
  const auto outcome =
      run_unread("echo $$ > $RANK.pid; exec yes", "kill -TERM $!; wait $!");
  EXPECT_EQ(outcome.status, 143);
  EXPECT_EQ(alive("0.pid 1.pid"), "");
}

TEST_F(Unread, AFailureStopsTheOthers) {
  const auto outcome = run_unread(
      "echo $$ > $RANK.pid; [ $RANK = 0 ] && exec yes; "
      "until [ -e go ]; do sleep 0.05; done; exit 7",
      "touch go; while ps -o stat= -p $(cat 0.pid) | grep -qv Z; do "
      "sleep 0.05; done; timeout 60 cat out > read 9>&- & exec 9>&-; wait");
  EXPECT_EQ(alive("0.pid 1.pid"), "");
  EXPECT_THAT(
      text("read"),
      ContainsRegex("first failure: rank 1 .local 1, pid [0-9]+.: exit status "
                    "7"));
}

TEST_F(Launcher, RedirectsOneRankAndShowsAnother) {
  const auto outcome =
      run("--nproc-per-node 2 --redirects 0:3 --log-dir logs", "echo $RANK");
  EXPECT_EQ(outcome.out, "1\n");
  EXPECT_EQ(shell("cat logs/*/attempt_0/0/stdout.log").out, "0\n");
}

TEST_F(Launcher, AFailureStopsTheOthersAndComesFirst) {
  const auto outcome =
      run("--nproc-per-node 3",
          "echo $$ > $RANK.pid; [ $RANK = 1 ] && exit 7; exec sleep 100");
  EXPECT_EQ(outcome.status, 7);
  EXPECT_THAT(
      outcome.err,
      AllOf(
          ContainsRegex(
              "first failure: rank 1 .local 1, pid [0-9]+.: exit status 7"),
          ContainsRegex("stopped: ranks [02], [02]")));
  EXPECT_EQ(alive("0.pid 2.pid"), "");
}

TEST_F(Launcher, RestartsAllRanksOnAnotherPort) {
  const auto outcome =
      run("--nproc-per-node 2 --max-restarts 2",
          "echo $MASTER_PORT >> $RANK.ports; "
          "[ $RANK$TORCHELASTIC_RESTART_COUNT = 11 ] && kill -9 $$; "
          "[ $RANK = 0 ] && for i in $(seq 1000); do [ $(cat [01].ports | wc "
          "-l) -gt $(($TORCHELASTIC_RESTART_COUNT*2+1)) ] && break; sleep "
          "0.05; done; [ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 5; exit 0");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(
      outcome.err,
      AllOf(
          HasSubstr("exit status 5"),
          HasSubstr("restart 1 of 2"),
          HasSubstr("killed by SIGKILL"),
          HasSubstr("restart 2 of 2")));
  EXPECT_EQ(shell("sort -u 0.ports | wc -l").out, "3\n");
  EXPECT_EQ(text("0.ports"), text("1.ports"));
  // Not where clients get theirs: they could be connected with themselves.
  EXPECT_EQ(shell("awk '$1 >= 32768' 0.ports").out, "");
}

TEST_F(Launcher, GivesUpWithTheStatusOfTheLastFailure) {
  const auto outcome = run("--max-restarts 1", "kill -SEGV $$");
  EXPECT_EQ(outcome.status, 139);
}

TEST_F(Launcher, ShowsWhatTheRankHasWritten) {
  const auto outcome = shell(format(
      "ulimit -c 0; lockstep run --nproc-per-node 2 --redirects 3 {} throw",
      LOCKSTEP_FAILING_RANK));
  EXPECT_EQ(outcome.status, 134);
  EXPECT_THAT(outcome.err, HasSubstr("lockstep run:     no \"data\"\n"));
  EXPECT_THAT(outcome.err, HasSubstr("lockstep run:     files: "));
}

TEST_F(Launcher, PassesSignalsOn) {
  const auto outcome = shell(
      "lockstep run --nproc-per-node 2 sh -c '"
      "trap \"echo $RANK >> got; exit 75\" TERM; echo > $RANK.up; "
      "while :; do sleep 0.05; done' & "
      "wait_for 0.up 1.up; "
      "kill -TERM $!; wait $!");
  EXPECT_EQ(outcome.status, 75) << outcome.err;
  EXPECT_EQ(shell("sort got").out, "0\n1\n");
  EXPECT_THAT(outcome.err, HasSubstr("SIGTERM: passed on to 2 ranks\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("failure")));
}

TEST_F(Launcher, KillsThoseThatDoNotEnd) {
  const auto outcome = shell(
      "lockstep run --nproc-per-node 2 --shutdown-timeout 0.2 sh -c '"
      "trap \"\" TERM; echo $$ > $RANK.pid; "
      "while :; do sleep 0.05; done' & "
      "wait_for 0.pid 1.pid; "
      "kill -TERM $!; wait $!");
  EXPECT_EQ(outcome.status, 143);
  EXPECT_THAT(outcome.err, HasSubstr("2 ranks did not end within 0.2 s"));
  EXPECT_EQ(alive("0.pid 1.pid"), "");
}

TEST_F(Launcher, WaitsNoTimeThatCannotBeCounted) {
  for (const char* seconds : {"1e17", "nan", "-1"}) {
    const auto outcome = run(format("--shutdown-timeout {}", seconds), "true");
    EXPECT_EQ(outcome.status, 2) << seconds;
    EXPECT_THAT(outcome.err, HasSubstr("--shutdown-timeout")) << seconds;
  }
}

// It would not take the signal that ends it before somebody continues it.
TEST_F(Launcher, EndsARankThatIsStopped) {
  const auto outcome =
      run("--nproc-per-node 2 --shutdown-timeout 1000",
          "echo $$ > $RANK.pid; [ $RANK = 1 ] && kill -STOP $$; "
          "for i in $(seq 1000); do "
          "case $(ps -o stat= -p $(cat 1.pid)) in T*) exit 3;; esac; "
          "sleep 0.05; done; exit 4");
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_EQ(alive("0.pid 1.pid"), "");
}

TEST_F(Launcher, TakesItsRanksAlongWhenItIsKilled) {
  const auto outcome = shell(
      "lockstep run --nproc-per-node 2 sh -c '"
      "echo $$ > $RANK.pid; exec sleep 100' & "
      "wait_for 0.pid 1.pid; "
      "kill -KILL $!; wait $!");
  EXPECT_EQ(outcome.status, 137);
  EXPECT_EQ(alive("0.pid 1.pid"), "");
}

TEST_F(Launcher, ASecondInterruptKills) {
  const auto outcome = shell(
      "env --default-signal=INT lockstep run --nproc-per-node 2 sh -c '"
      "trap \"echo > $RANK.int\" INT; echo > $RANK.up; "
      "while :; do sleep 0.05; done' & "
      "wait_for 0.up 1.up; kill -INT $!; "
      "wait_for 0.int 1.int; "
      "kill -INT $!; wait $!");
  EXPECT_EQ(outcome.status, 130);
  EXPECT_THAT(outcome.err, HasSubstr("killing all ranks"));
}

TEST_F(Launcher, LeavesIgnoredSignalsIgnoredAsNohupWants) {
  const auto outcome = shell(
      "env --ignore-signal=HUP lockstep run --nproc-per-node 2 sh -c '"
      "echo > $RANK.up; for i in $(seq 1000); do [ -e go ] && exit 0; "
      "sleep 0.05; done; exit 1' & wait_for 0.up 1.up; "
      "kill -HUP $!; sleep 0.3; touch go; wait $!");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(Launcher, WhatARankLeavesRunningDoesNotHoldIt) {
  const auto outcome = run("--tee 3", "sleep 100 & echo $! > child; echo done");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("done"));
  shell("kill $(cat child)");
}

TEST_F(Launcher, ChildrenOfAFailedRankEndWithIt) {
  const auto outcome =
      run("--nproc-per-node 2",
          "sleep 100 & echo $! > $RANK.child; "
          "for i in $(seq 1000); do [ -s 0.child -a -s 1.child ] && break; "
          "sleep 0.05; done; exit $RANK");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(alive("0.child 1.child"), "");
}

TEST_F(Launcher, StartsPythonForScriptsAndModules) {
  const auto script = shell(
      "printf 'import os, sys\\nprint(os.environ[\"RANK\"], sys.argv[1:])\\n' "
      "> "
      "rank.py; lockstep run rank.py --lr_max 1");
  EXPECT_EQ(script.out, "0 ['--lr_max', '1']\n") << script.err;
  EXPECT_THAT(shell("lockstep run -m platform").out, HasSubstr("Linux"));
}

TEST_F(Launcher, ReadsTorchrunsVariables) {
  EXPECT_EQ(
      shell("PET_NPROC_PER_NODE=2 PET_RDZV_ID=j PET_STANDALONE=1 lockstep run "
            "sh -c 'echo $TORCHELASTIC_RUN_ID'")
          .out,
      "j\nj\n");
  EXPECT_EQ(
      shell("PET_NPROC_PER_NODE=2 lockstep run --nproc_per_node 1 echo x").out,
      "x\n");
}

struct Refusal {
  std::string flags = {};
  std::string text = {};
  int status = 2;
};

class Refused : public Launcher, public testing::WithParamInterface<Refusal> {};

TEST_P(Refused, SaysWhy) {
  const Refusal& row = GetParam();
  const auto outcome =
      shell("CUDA_VISIBLE_DEVICES=6,7 lockstep run " + row.flags);
  EXPECT_EQ(outcome.status, row.status);
  EXPECT_THAT(outcome.err, HasSubstr(row.text));
  EXPECT_EQ(outcome.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    CommandLines,
    Refused,
    testing::Values(
        Refusal{"", "PROGRAM is missing"},
        Refusal{"--nproc-per-nod 2 true", "unknown flag '--nproc-per-nod'"},
        Refusal{"--nproc-per-node two true", "does not take 'two'"},
        Refusal{"--nnodes 1:4 true", "torchrun --nnodes 1:4"},
        Refusal{"--nnodes x true", "--nnodes: expected a number"},
        Refusal{"--nnodes 2 --node-rank 2 true", "expected 0 to 1, got 2"},
        Refusal{"--nnodes 2 true", "--master-addr is missing"},
        Refusal{
            "--nnodes 2 --rdzv-endpoint :29500 true",
            "--master-addr is missing"},
        Refusal{
            "--nnodes 2 --master-addr 127.0.0.1 --master-port 0 true",
            "port 0, a free one, is for one machine"},
        Refusal{
            "--nnodes 2 --rdzv-endpoint localhost:0 true",
            "port 0, a free one, is for one machine"},
        Refusal{"--nnodes 2 --standalone true", "--standalone is one machine"},
        Refusal{"--rdzv-backend etcd true", "--rdzv-backend etcd"},
        Refusal{"--rdzv-endpoint box:x true", "'x' is not a port"},
        Refusal{"--master-port 70000 true", "70000 is not a port"},
        Refusal{"--max-restarts -1 true", "--max-restarts"},
        Refusal{"--local-ranks-filter 1 true", "there is no rank 1 here"},
        Refusal{"--signals-to-handle SIGKILL true", "SIGKILL"},
        Refusal{
            "--virtual-local-rank --nproc-per-node 4 env",
            "CUDA_VISIBLE_DEVICES names 2: '6,7'"},
        Refusal{"--tee 9 true", "--tee does not take '9'"},
        Refusal{"no-such-program", "does not start", 4},
        Refusal{"/etc/passwd", "is it executable?", 4}));

} // namespace
} // namespace lockstep::launch
