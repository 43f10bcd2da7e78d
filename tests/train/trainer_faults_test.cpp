// SPDX-License-Identifier: BSD-3-Clause
//
// Whole runs on a disk that fails once, fills up, or stays full. A run either
// ends with exit code 4 or goes on with a warning; on a healthy disk it then
// comes to the bits of a run that nothing disturbed.
#include <cerrno>
#include <cstdio>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/train/settings/internal/run_names.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"
#include "tests/train/fault_run.h"
#include "tests/train/trainer_fixture.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Opened once: a run of a few steps is shorter than that.
OwnParts opened_data() {
  static const DatasetParts data = open_dataset("fashion-mnist", "");
  return {.train_data = data.train, .test_data = data.test};
}

class TrainerFaults : public TrainerFixture {
 protected:
  /// How one start of the program ended.
  struct Ending {
    std::optional<Error> error = {};
    std::vector<std::string> warnings = {};
  };

  TrainerFaults() {
    MemoryFs memory;
    start_on(memory);
    expected_ = files_of(memory);
  }

  Ending start_on(FileSystem& fs, std::int64_t stop_after = 0) {
    TrainConfig config = small("");
    config.output = kRunFolder;
    config.resume = "auto";
    config.checkpoint_interval = 2;
    config.max_train_samples = 4 * config.batch_size;
    config.max_eval_samples = 64;
    RecordingLog log;
    Ending ending;
    std::int64_t steps = 0;
    try {
      train(
          config,
          {.fs = &fs,
           .log = &log,
           .should_stop = [&] { return ++steps == stop_after; },
           .own = opened_data()});
    } catch (const Exception& error) {
      ending.error = error.error();
    }
    ending.warnings = log.lines[LogLevel::kWarning];
    return ending;
  }

  /// What must be equal in equal runs.
  static std::map<std::string, std::string> files_of(FileSystem& fs) {
    std::map<std::string, std::string> files;
    for (const std::string name :
         {"checkpoint.pth.tar", "model_best.pth.tar", "steps.csv"}) {
      auto text = read_text(fs, format("{}/{}", kRunFolder, name));
      files[name] = text ? *std::move(text) : "";
    }
    return files;
  }

  /// Begins as `start` has it, under faults, and then goes on without.
  void try_plan(const MemoryFs& start, const FaultPlan& plan) {
    plan_ = plan;
    MemoryFs memory = copy_of(start);
    FaultFs faulty(memory, plan);
    const Ending ending = start_on(faulty);
    ++runs_;
    errors_ += ending.error ? 1 : 0;
    warned_ += ending.warnings.empty() ? 0 : 1;
    if (ending.error && error_info(ending.error->code).exit_code != 4) {
      report("wrong error: " + lockstep::to_string(*ending.error));
    }
    if (!ending.error && files_of(memory) != expected_ &&
        ending.warnings.empty()) {
      report("ends well, with other files");
    }
    if (plan.failures == 1) { // else they cannot be removed
      for (const std::string& name : temporaries(memory)) {
        report("leaves " + name);
      }
    }
    go_on(memory);
  }

  void go_on(MemoryFs& memory) {
    bury(memory);
    const bool is_known = holds_run(memory, kRunFolder);
    const Ending ending = start_on(memory);
    if (ending.error) {
      report("cannot go on: " + lockstep::to_string(*ending.error));
    }
    for (const std::string& warning : ending.warnings) {
      if (!warning.starts_with(kLeftFolder)) {
        report("warns: " + warning);
      }
    }
    if (is_known) { // else it is a new folder, with what was there
      for (const std::string& name : temporaries(memory)) {
        report("keeps " + name);
      }
    }
    for (const auto& [name, text] : files_of(memory)) {
      if (text != expected_[name]) {
        report(format("another {} in the end", name));
      }
    }
  }

  /// Every `stride` th operation up to the middle of the run, which is the end
  /// of its first epoch, and a third of that later. One error after the other.
  void fail_operations(
      const MemoryFs& start,
      std::uint64_t stride,
      std::uint64_t failures = 1) {
    MemoryFs memory = copy_of(start);
    FaultFs counting(memory);
    start_on(counting);
    const std::uint64_t operations = counting.operations();
    bool is_full = false;
    for (std::uint64_t index = 0; index < operations;
         index += index < operations / 2 ? stride : 3 * stride) {
      is_full = !is_full;
      try_plan(
          start,
          {.fail_at = index,
           .failures = failures,
           .error_number = is_full ? ENOSPC : EIO,
           .short_write_bytes = is_full ? 700U : 0U});
    }
  }

  std::vector<std::string> finish(std::string_view what) {
    std::printf(
        "%s: %zu runs, %zu ended by an error, %zu with warnings\n",
        std::string(what).c_str(),
        runs_,
        errors_,
        warned_);
    return broken_;
  }

  void report(const std::string& what) {
    broken_.push_back(format(
        "{} (operation {}, errno {}, room for {})",
        what,
        plan_.fail_at,
        plan_.error_number,
        plan_.byte_budget));
  }

  std::map<std::string, std::string> expected_;
  FaultPlan plan_;
  std::size_t runs_ = 0;
  std::size_t errors_ = 0;
  std::size_t warned_ = 0;
  std::vector<std::string> broken_;
};

TEST_F(TrainerFaults, ADiskWithoutLocksIsAWarning) {
  MemoryFs memory = MemoryFs::without_locks();
  const Ending ending = start_on(memory);
  EXPECT_FALSE(ending.error);
  EXPECT_THAT(
      ending.warnings,
      ElementsAre(HasSubstr("the run folder: it cannot be locked")));
  EXPECT_EQ(files_of(memory), expected_);
  EXPECT_THAT(
      read_text(memory, format("{}/{}", kRunFolder, kLogFile)).value(),
      HasSubstr("it cannot be locked"));
}

TEST_F(TrainerFaults, AnOperationThatFailsOnceChangesNothingInTheEnd) {
  // WriterFaults has every operation.
  fail_operations(MemoryFs(), /*stride=*/3);
  EXPECT_THAT(finish("one failure"), IsEmpty());
}

TEST_F(TrainerFaults, AnOperationThatFailsOnceInARunThatGoesOn) {
  MemoryFs start;
  ASSERT_FALSE(start_on(start, /*stop_after=*/3).error);
  fail_operations(start, /*stride=*/5);
  EXPECT_THAT(finish("one failure, goes on"), IsEmpty());
}

TEST_F(TrainerFaults, ADiskThatIsGoneForAWhileChangesNothingInTheEnd) {
  fail_operations(MemoryFs(), /*stride=*/5, /*failures=*/60);
  EXPECT_THAT(finish("an outage"), IsEmpty());
}

// From the start, at any time, and at the very end.
TEST_F(TrainerFaults, AFullDiskChangesNothingInTheEnd) {
  constexpr std::uint64_t kParts = 24;
  const std::uint64_t run_bytes = 5 * expected_["checkpoint.pth.tar"].size();
  for (std::uint64_t part = 0; part <= kParts; ++part) {
    try_plan(
        MemoryFs(),
        {.error_number = ENOSPC, .byte_budget = run_bytes * part / kParts});
  }
  EXPECT_THAT(finish("full disk"), IsEmpty());
  EXPECT_LT(errors_, runs_) << "the last ones have room for everything";
}

} // namespace
} // namespace lockstep::train
