// SPDX-License-Identifier: BSD-3-Clause
//
// Which run below `runs/` --resume auto goes on with.
#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/train/checkpoints.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep::train {
namespace {

/// The run that `--resume auto` finds below `runs/`.
std::string newest_run_in(FileSystem& fs) {
  TrainConfig config;
  config.resume = "auto";
  const auto found = find_resumption(fs, config);
  return found ? found->folder : "none";
}

void begin_run(FileSystem& fs, const std::string& folder) {
  fs.create_directories(folder).value();
  write_file_atomically(fs, folder + "/args.yaml", "").value();
}

TEST(NewestRun, IsFoundInAnyFileSystem) {
  MemoryFs fs;
  EXPECT_EQ(newest_run_in(fs), "none");
  begin_run(fs, "runs/b");
  begin_run(fs, "runs/a");
  EXPECT_EQ(newest_run_in(fs), "runs/a");
  fs.truncate("runs/b/args.yaml", 0).value();
  EXPECT_EQ(newest_run_in(fs), "runs/b");
  MemoryFs later = fs.after_power_loss({.keep_names = true});
  EXPECT_EQ(newest_run_in(later), "runs/b");
}

// A disk that cannot be read is not one without runs.
TEST(NewestRun, ThatCannotBeLookedForIsAnError) {
  MemoryFs fs;
  begin_run(fs, "runs/a");
  for (std::uint64_t operation = 0; operation < 3; ++operation) {
    FaultFs faulty(fs, {.fail_at = operation});
    EXPECT_THROW(newest_run_in(faulty), Exception) << operation;
  }
  // What this user may not enter is no run of theirs.
  FaultFs closed(fs, {.fail_at = 1, .failures = 2, .error_number = EACCES});
  EXPECT_EQ(newest_run_in(closed), "none");
}

} // namespace
} // namespace lockstep::train
