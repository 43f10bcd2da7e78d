// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/failure_report.h"

#include <csignal>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "tests/support/memory_fs.h"

namespace lockstep::launch {
namespace {

constexpr int kExit7 = 7 << 8;

RankEnd read(const std::string& text) {
  MemoryFs fs;
  EXPECT_TRUE(fs.create_directories("rank"));
  EXPECT_TRUE(write_file_atomically(fs, "rank/error.json", text));
  RankEnd end{.folder = "rank"};
  read_error_file(fs, end);
  return end;
}

TEST(ReadErrorFile, TakesBothFormsOfTorchrun) {
  const RankEnd full = read(
      R"({"message": {"message": "what", "extraInfo":
          {"py_callstack": "what\n#0 main", "timestamp": "1"}}})");
  EXPECT_EQ(full.message, "what\n#0 main");
  EXPECT_FALSE(full.is_follow_on);
  EXPECT_EQ(
      read(R"({"message": {"message": "what", "extraInfo": {}}})").message,
      "what");
  EXPECT_EQ(read(R"({"message": "what", "timestamp": "1"})").message, "what");
}

TEST(ReadErrorFile, IsNotUpsetByOtherFiles) {
  for (const char* text :
       {"",
        "{",
        "[]",
        "1",
        R"({"message": 1})",
        R"({"message": {}})",
        R"({"message": {"extraInfo": [1]}})",
        R"({"message": {"extraInfo": {"follow_on": "no"}}})",
        R"({"message": {"message": 5, "extraInfo": {"py_callstack": []}}})"}) {
    EXPECT_EQ(read(text).message, "") << text;
  }
  MemoryFs empty;
  RankEnd end{.folder = "nowhere"};
  read_error_file(empty, end);
  EXPECT_EQ(end.message, "");
}

TEST(RootCause, IsTheFirstThatFailedOnItsOwn) {
  EXPECT_EQ(root_cause({{.rank = 0}, {.rank = 1}}), nullptr);
  const std::vector<RankEnd> ends{
      {.rank = 3},
      {.rank = 0, .status = kExit7, .is_follow_on = true},
      {.rank = 2, .status = SIGKILL},
      {.rank = 1, .status = SIGTERM, .was_stopped = true}};
  EXPECT_EQ(root_cause(ends)->rank, 2);
  EXPECT_EQ(root_cause({ends[0], ends[1], ends[3]})->rank, 0);
}

TEST(ExitCode, IsThatOfAShell) {
  EXPECT_EQ(exit_code(0), 0);
  EXPECT_EQ(exit_code(kExit7), 7);
  EXPECT_EQ(exit_code(SIGKILL), 137);
}

TEST(FailureText, NamesTheFirstOnTop) {
  EXPECT_EQ(
      failure_text(
          {{.rank = 4,
            .local_rank = 0,
            .pid = 10,
            .status = kExit7,
            .folder = "/none/0",
            .message = "rank 5 is gone\n#0 main",
            .is_follow_on = true},
           {.rank = 5,
            .local_rank = 1,
            .pid = 11,
            .status = SIGKILL,
            .folder = "/none/1",
            .message = "first\x1b[31m\nsecond"},
           {.rank = 6, .local_rank = 2, .status = SIGTERM, .was_stopped = true},
           {.rank = 7, .local_rank = 3, .was_stopped = true}}),
      "first failure: rank 5 (local 1, pid 11): killed by SIGKILL\n"
      "    first\\x1b[31m\n"
      "    second\n"
      "    files: /none/1\n"
      "then: rank 4 (local 0, pid 10): exit status 7\n"
      "    rank 5 is gone\n"
      "stopped: ranks 6, 7\n");
}

} // namespace
} // namespace lockstep::launch
