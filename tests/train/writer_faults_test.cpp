// SPDX-License-Identifier: BSD-3-Clause
//
// Every operation of a run that writes fails once, the process dies before
// every operation, every room on the disk runs out, and after each of these
// the power goes in six ways. What is left must be a run that goes on.
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <span>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoints.h"
#include "tests/support/fault_fs.h"
#include "tests/train/fault_run.h"

namespace lockstep::train {
namespace {

using ::testing::IsEmpty;

/// Tries a run under faults, from the start or from where one was killed.
class FaultSearch {
 public:
  FaultSearch(const FakeRun& run, std::int64_t first_step) : judge_(run) {
    if (first_step > 0) {
      first_ = live(start_, run, {.until = first_step});
      bury(start_);
    }
    MemoryFs memory = copy_of(start_);
    FaultFs counting(memory);
    live(counting, run);
    operations_ = counting.operations();
  }

  /// One operation fails; the process lives on.
  void fail_every_operation(
      std::span<const int> errors,
      std::uint64_t short_write_bytes) {
    for (std::uint64_t index = 0; index < operations_; ++index) {
      for (const int error : errors) {
        try_plan(
            {.fail_at = index,
             .error_number = error,
             .short_write_bytes = short_write_bytes});
      }
    }
  }

  /// The process dies before an operation, or in the middle of a write.
  void die_before_every_operation(std::uint64_t short_write_bytes) {
    for (std::uint64_t index = 0; index <= operations_; ++index) {
      try_plan(
          {.fail_at = index,
           .failures = FaultPlan::kNever,
           .short_write_bytes = short_write_bytes});
    }
  }

  /// The disk is gone for that many operations.
  void fail_for_a_while(std::uint64_t failures) {
    for (std::uint64_t index = 0; index < operations_; index += 3) {
      try_plan(
          {.fail_at = index, .failures = failures, .error_number = ENOSPC});
    }
  }

  void fill_the_disk(std::uint64_t step_bytes, std::uint64_t last_bytes) {
    for (std::uint64_t budget = 0; budget <= last_bytes; budget += step_bytes) {
      try_plan({.error_number = ENOSPC, .byte_budget = budget});
    }
  }

  /// What was found; says how much was tried.
  std::vector<std::string> finish(std::string_view what) {
    std::printf(
        "%s: %zu lives of %zu operations, %zu states, %zu ended by an error\n",
        std::string(what).c_str(),
        lives_,
        static_cast<std::size_t>(operations_),
        states_,
        errors_);
    return std::move(broken_);
  }

  [[nodiscard]] std::size_t states() const {
    return states_;
  }

 private:
  void try_plan(const FaultPlan& plan) {
    plan_ = plan;
    MemoryFs memory = copy_of(start_);
    FaultFs faulty(memory, plan);
    // What a power cut leaves when the first success after a fault is told.
    std::optional<MemoryFs> told;
    Life life_then;
    const auto on_saved = [&](const Life& so_far) {
      if (!told && faulty.operations() > plan.fail_at) {
        told = memory.after_power_loss({});
        life_then = so_far;
      }
    };
    Life life = live(faulty, judge_.run(), {.on_saved = on_saved});
    ++lives_;
    if (told) {
      judge(*told, life_then, /*to_the_end=*/false);
    }
    errors_ += life.error ? 1 : 0;
    if (plan.failures != FaultPlan::kNever) {
      check_ending(memory, life);
    }
    life.saved.insert(
        life.saved.begin(),
        first_.saved.begin(),
        first_.saved.end());
    life.tried = std::max(life.tried, first_.tried);
    lose_power(memory, life);
  }

  /// With an error of which the code knows nothing, the extremes are enough.
  void lose_power(const MemoryFs& memory, const Life& life) {
    using enum PowerLoss::Data;
    for (const auto data : {kLost, kTorn, kKept}) {
      for (const bool keep_names : {false, true}) {
        const bool is_extreme = data != kTorn && (data == kKept) == keep_names;
        if (is_extreme || plan_.error_number == EIO) {
          MemoryFs later =
              memory.after_power_loss({.data = data, .keep_names = keep_names});
          judge(later, life, is_extreme);
        }
      }
    }
  }

  /// A process that nobody killed tells what went wrong.
  void check_ending(MemoryFs& memory, const Life& life) {
    if (life.error && error_info(life.error->code).exit_code != 4) {
      report("wrong error: " + lockstep::to_string(*life.error));
    }
    if (!life.error && life.newest() != judge_.run().steps() &&
        first_.newest() != judge_.run().steps()) {
      report(format("ends well with checkpoint {}", life.newest()));
    }
    if (plan_.failures == 1) { // else they cannot be removed
      for (const std::string& name : temporaries(memory)) {
        report("leaves " + name);
      }
    }
    if (life.saved.size() < life.tries && life.warnings.empty()) {
      report("fails in silence");
    }
  }

  void judge(MemoryFs& fs, const Life& life, bool to_the_end) {
    ++states_;
    for (const std::string& what : judge_.judge(fs, life, to_the_end)) {
      report(what);
    }
  }

  /// Each kind of mistake once.
  void report(const std::string& what) {
    if (seen_.insert(what).second) {
      broken_.push_back(format(
          "{} (operation {}, errno {}, room for {}, {})",
          what,
          plan_.fail_at,
          plan_.error_number,
          plan_.byte_budget,
          plan_.failures == 1 ? "once" : "killed"));
    }
  }

  Judge judge_;
  MemoryFs start_;
  Life first_;
  std::uint64_t operations_ = 0;
  FaultPlan plan_;
  std::size_t lives_ = 0;
  std::size_t states_ = 0;
  std::size_t errors_ = 0;
  std::set<std::string> seen_;
  std::vector<std::string> broken_;
};

constexpr std::array kAllErrors{EIO, ENOSPC, EMFILE, EROFS};
constexpr std::array kUsualErrors{EIO, ENOSPC};

const FakeRun kInside{};
const FakeRun kAfterEpochs{.saves_inside_epochs = false, .keep = 1};

TEST(WriterFaults, AnOperationThatFailsOnceCostsNothingThatWasSaved) {
  FaultSearch search(kInside, 0);
  search.fail_every_operation(kAllErrors, 0);
  EXPECT_THAT(search.finish("one failure"), IsEmpty());
}

TEST(WriterFaults, AnOperationThatFailsOnceAfterEpochs) {
  FaultSearch search(kAfterEpochs, 0);
  search.fail_every_operation(kUsualErrors, 700);
  EXPECT_THAT(search.finish("one failure, after epochs"), IsEmpty());
}

TEST(WriterFaults, AnOperationThatFailsOnceInARunThatGoesOn) {
  FaultSearch search(kInside, 3);
  search.fail_every_operation(kUsualErrors, 100);
  EXPECT_THAT(search.finish("one failure, goes on"), IsEmpty());
}

TEST(WriterFaults, APowerCutAnywhereLeavesARunThatGoesOn) {
  FaultSearch search(kInside, 0);
  for (const std::uint64_t reach : {0, 700}) {
    search.die_before_every_operation(reach);
  }
  EXPECT_THAT(search.finish("killed"), IsEmpty());
}

TEST(WriterFaults, APowerCutAfterEpochs) {
  FaultSearch search(kAfterEpochs, 0);
  for (const std::uint64_t reach : {0, 700}) {
    search.die_before_every_operation(reach);
  }
  EXPECT_THAT(search.finish("killed, after epochs"), IsEmpty());
}

TEST(WriterFaults, APowerCutInARunThatGoesOn) {
  FaultSearch search(kInside, 3);
  for (const std::uint64_t reach : {0, 700}) {
    search.die_before_every_operation(reach);
  }
  EXPECT_THAT(search.finish("killed, goes on"), IsEmpty());
}

// A checkpoint that cannot be read for a moment is passed over: what was cut
// off for the one before must not be missed by it later.
TEST(WriterFaults, AStartThatIsCutOffAtOnceLeavesRowsThatFit) {
  MemoryFs start;
  live(start, kInside, {.until = 3});
  Judge judge(kInside);
  std::uint64_t older = 0;
  for (std::uint64_t index = 0; index < 80; ++index) {
    MemoryFs memory = copy_of(start);
    FaultFs faulty(memory, {.fail_at = index});
    live(faulty, kInside, {.until = 0});
    const std::string link = format("{}/{}", kRunFolder, kLatestFile);
    older += memory.resolve(link)->ends_with(checkpoint_name(2)) ? 1 : 0;
    EXPECT_THAT(
        judge.judge(memory, {.tried = 3}, /*to_the_end=*/true),
        IsEmpty())
        << "operation " << index;
  }
  EXPECT_GT(older, 0U) << "no fault hit the newest checkpoint";
}

TEST(WriterFaults, ADiskThatIsGoneForAWhileMakesNoFalseClaims) {
  FaultSearch search(kInside, 0);
  for (const std::uint64_t failures : {15, 40, 90}) {
    search.fail_for_a_while(failures);
  }
  EXPECT_THAT(search.finish("an outage"), IsEmpty());
}

TEST(WriterFaults, AFullDiskKeepsWhatWasSaved) {
  FaultSearch search(kInside, 0);
  search.fill_the_disk(/*step_bytes=*/71, /*last_bytes=*/22'000);
  EXPECT_THAT(search.finish("full disk"), IsEmpty());
}

} // namespace
} // namespace lockstep::train
