// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/job_note.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace lockstep::launch {
namespace {

// NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs
class JobNote : public testing::Test {
 protected:
  void TearDown() override {
    ::unsetenv("TORCHELASTIC_ERROR_FILE");
    ::unsetenv("TORCHELASTIC_RESTART_COUNT");
  }
  /// As a launcher starts the ranks for the `attempt`-th time.
  void start(int attempt, int rank) {
    const std::string number = std::to_string(attempt);
    const std::string folder =
        dir_ / ("attempt_" + number + "/" + std::to_string(rank));
    std::filesystem::create_directories(folder);
    ::setenv("TORCHELASTIC_ERROR_FILE", (folder + "/error.json").c_str(), 1);
    ::setenv("TORCHELASTIC_RESTART_COUNT", number.c_str(), 1);
  }
  test::ScratchDir dir_;
};

TEST_F(JobNote, TheNextAttemptReadsWhatOneHasWritten) {
  start(0, 0);
  EXPECT_FALSE(is_restarted());
  EXPECT_EQ(read_job_note(), "");
  write_job_note("runs/a");
  start(1, 2);
  EXPECT_TRUE(is_restarted());
  EXPECT_EQ(read_job_note(), "runs/a");
  write_job_note("runs/a-2");
  start(2, 0);
  EXPECT_EQ(read_job_note(), "runs/a-2");
}

TEST_F(JobNote, WithoutALauncherThereIsNone) {
  EXPECT_FALSE(is_restarted());
  write_job_note("runs/a");
  EXPECT_EQ(read_job_note(), "");
}

TEST_F(JobNote, AnErrorFileOfAnotherPlaceIsLeftAlone) {
  ::setenv("TORCHELASTIC_ERROR_FILE", (dir_ / "a/b/error.json").c_str(), 1);
  write_job_note("runs/a");
  EXPECT_EQ(read_job_note(), "");
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}
// NOLINTEND(concurrency-mt-unsafe)

} // namespace
} // namespace lockstep::launch
