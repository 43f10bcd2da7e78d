// SPDX-License-Identifier: BSD-3-Clause
//
// Rows survive a disk that fails at any operation, for a while or for good, and
// a power cut spares all that a successful sync covered.
#include "lockstep/base/internal/row_file.h"

#include <atomic>
#include <cerrno>
#include <semaphore>
#include <thread>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/base/real_files.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

const std::string kRows = "run/rows.csv";

MemoryFs with_rows(std::string_view text) {
  MemoryFs fs;
  fs.create_directories("run").value();
  if (!text.empty()) {
    const auto file = fs.append(kRows).value();
    file->write(as_byte_span(text)).value();
    file->sync().value();
    fs.sync_directory("run").value();
  }
  return fs;
}

std::string rows_of(FileSystem& fs) {
  return read_text(fs, kRows).value();
}

// Some are longer than a sector, so that a write of them can be torn.
std::string row(int index) {
  return format("{},{}", index, std::string(index % 3 == 0 ? 700 : 5, 'x'));
}

TEST(RowFile, AppendsLinesAndKnowsItsSize) {
  MemoryFs fs = with_rows("");
  RowFile rows = RowFile::open(fs, kRows).value();
  EXPECT_EQ(rows.size(), 0U);
  ASSERT_TRUE(rows.append("a,b"));
  ASSERT_TRUE(rows.append(""));
  EXPECT_EQ(rows_of(fs), "a,b\n\n");
  EXPECT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows.missing_bytes(), 0U);
  EXPECT_EQ(rows.dropped(), 0U);
  EXPECT_EQ(RowFile::open(fs, kRows).error().detail, "E_LOCKED");
  EXPECT_EQ(
      RowFile::open(fs, "none/rows.csv").error().code,
      ErrorCode::kNotFound);
}

TEST(RowFile, CutsBackToTheLastWholeLineThatIsKept) {
  struct Case {
    std::string before;
    std::uint64_t keep;
    std::string after;
    std::uint64_t missing;
  };
  const std::string big(200'000, 'x');
  for (const Case& c : std::vector<Case>{
           {"a\nb\n", RowFile::kKeepAll, "a\nb\n", 0},
           {"a\nb\nhalf", RowFile::kKeepAll, "a\nb\n", 0},
           {"half", RowFile::kKeepAll, "", 0},
           {"a\n" + big, RowFile::kKeepAll, "a\n", 0},
           {"a\nb\n", 2, "a\n", 0},
           {"a\nb\n", 0, "", 0},
           {"a\nb\n", 10, "a\nb\n", 6},
           {"a\nhalf", 8, "a\n", 6},
           {"", 8, "", 8}}) {
    MemoryFs fs = with_rows(c.before);
    {
      RowFile rows = RowFile::open(fs, kRows, c.keep).value();
      EXPECT_EQ(rows.missing_bytes(), c.missing);
      EXPECT_EQ(rows.size(), c.after.size());
      ASSERT_TRUE(rows.append("z"));
    }
    EXPECT_EQ(rows_of(fs), c.after + "z\n");
    MemoryFs later = fs.after_power_loss({});
    EXPECT_EQ(rows_of(later), c.after); // the cut is durable at once
  }
}

TEST(RowFile, FollowsALink) {
  MemoryFs fs = with_rows("a\n");
  fs.symlink("run/rows.csv", "link").value();
  ASSERT_TRUE(RowFile::open(fs, "link").value().append("b"));
  EXPECT_EQ(rows_of(fs), "a\nb\n");
}

// A short run: 12 rows, a sync after each fourth. `offset` is the size that the
// last successful sync covered.
struct Written {
  std::string text = {};
  std::uint64_t offset = 0;
  int errors = 0;
};

Written run_rows(RowFile& rows) {
  Written run;
  for (int i = 0; i < 12; ++i) {
    run.text += row(i) + "\n";
    run.errors += rows.append(row(i)) ? 0 : 1;
    if (i % 4 == 3) {
      const std::uint64_t size = rows.size();
      EXPECT_EQ(size, run.text.size());
      const bool is_synced = rows.sync().has_value();
      run.errors += is_synced ? 0 : 1;
      run.offset = is_synced ? size : run.offset;
    }
  }
  return run;
}

std::uint64_t operations_of_a_run() {
  MemoryFs memory = with_rows("");
  FaultFs counting(memory);
  RowFile rows = RowFile::open(counting, kRows).value();
  run_rows(rows);
  return counting.operations();
}

void check_power_loss(const MemoryFs& fs, const Written& run) {
  using enum PowerLoss::Data;
  for (const auto data : {kLost, kKept, kTorn}) {
    for (const bool keep_names : {false, true}) {
      MemoryFs later =
          fs.after_power_loss({.data = data, .keep_names = keep_names});
      const std::string found =
          later.stat(kRows) ? rows_of(later) : std::string();
      EXPECT_GE(found.size(), run.offset);
      EXPECT_EQ(found.substr(0, run.offset), run.text.substr(0, run.offset));
    }
  }
}

TEST(RowFileFaults, NoRowIsLostOrDoubledIfAnOperationFails) {
  const std::uint64_t operations = operations_of_a_run();
  ASSERT_GT(operations, 20U);
  for (std::uint64_t index = 0; index < operations; ++index) {
    for (const std::uint64_t failures : {1U, 2U, 9U}) {
      for (const std::uint64_t reach : {0U, 600U}) {
        SCOPED_TRACE(format("{} {} {}", index, failures, reach));
        MemoryFs memory = with_rows("");
        FaultFs fs(
            memory,
            {.fail_at = index,
             .failures = failures,
             .error_number = ENOSPC,
             .short_write_bytes = reach});
        auto rows = RowFile::open(fs, kRows);
        for (int i = 0; i < 10 && !rows; ++i) {
          EXPECT_EQ(rows.error().detail, "E_NO_SPACE");
          rows = RowFile::open(fs, kRows);
        }
        const Written run = run_rows(*rows);
        check_power_loss(memory, run);
        for (int i = 0; i < 10 && !rows->flush(); ++i) {
        }
        EXPECT_EQ(rows_of(memory), run.text);
        EXPECT_TRUE(rows->sync());
        check_power_loss(memory, {run.text, run.text.size()});
        EXPECT_EQ(rows->dropped(), 0U);
      }
    }
  }
}

TEST(RowFileFaults, AFileWithRowsThatCannotBeOpenedIsAnError) {
  int errors = 0;
  for (std::uint64_t index = 0; index < 12; ++index) {
    MemoryFs memory = with_rows("one\ntwo\n");
    FaultFs fs(memory, {.fail_at = index});
    const auto rows = RowFile::open(fs, kRows, /*keep_bytes=*/4);
    errors += rows ? 0 : 1;
    EXPECT_TRUE(rows_of(memory).starts_with("one\n")) << index;
  }
  EXPECT_GT(errors, 8);
}

TEST(RowFileFaults, AKilledProcessLeavesWholeRowsToTheNext) {
  const std::uint64_t operations = operations_of_a_run();
  for (std::uint64_t index = 6; index < operations; ++index) {
    SCOPED_TRACE(index);
    MemoryFs memory = with_rows("");
    FaultFs fs(
        memory,
        {.fail_at = index,
         .failures = FaultPlan::kNever,
         .short_write_bytes = 600});
    Written run;
    if (auto rows = RowFile::open(fs, kRows)) {
      run = run_rows(*rows);
    }
    check_power_loss(memory, run);
    const RowFile next = RowFile::open(memory, kRows, run.offset).value();
    EXPECT_EQ(next.missing_bytes(), 0U);
    EXPECT_EQ(rows_of(memory), run.text.substr(0, run.offset));
  }
}

TEST(RowFileFaults, AFailedWriteLeavesWholeLinesToReaders) {
  MemoryFs memory = with_rows("");
  FaultFs fs(memory, {.byte_budget = 1000});
  RowFile rows = RowFile::open(fs, kRows).value();
  ASSERT_TRUE(rows.append("first"));
  const Status full = rows.append(std::string(2000, 'x'));
  EXPECT_EQ(full.error().detail, "E_NO_SPACE");
  EXPECT_EQ(rows_of(memory), "first\n");
  EXPECT_EQ(rows.size(), 6U + 2001U);
}

TEST(RowFileFaults, WritingAgainNeverTakesRowsOutOfTheFile) {
  MemoryFs memory = with_rows("");
  FaultFs fs(memory, {.fail_at = 9, .byte_budget = 2});
  RowFile rows = RowFile::open(fs, kRows).value();
  ASSERT_TRUE(rows.append("a"));
  ASSERT_EQ(fs.operations(), 9U);
  EXPECT_FALSE(rows.sync());
  EXPECT_EQ(rows.flush().error().detail, "E_NO_SPACE");
  EXPECT_EQ(rows_of(memory), "a\n"); // a killed process would leave them
}

TEST(RowFileFaults, DropsAndCountsTheNewestBeyondTheLimit) {
  MemoryFs memory = with_rows("");
  FaultFs fs(
      memory,
      {.fail_at = 8, .failures = 10'000, .error_number = ENOSPC});
  const std::string line(100'000, 'x');
  RowFile rows = RowFile::open(fs, kRows).value();
  ASSERT_EQ(fs.operations(), 8U);
  for (int i = 0; i < 15; ++i) {
    EXPECT_FALSE(rows.append(line));
  }
  EXPECT_EQ(rows.dropped(), 5U);
  EXPECT_EQ(rows.size(), 10U * 100'001U);
  EXPECT_EQ(rows_of(memory), "");
  while (!rows.flush()) {
  }
  EXPECT_EQ(memory.stat(kRows)->size, rows.size());
  // With a sound disk the length of a line does not matter.
  EXPECT_TRUE(rows.append(std::string(3'000'000, 'y')));
  EXPECT_TRUE(rows.append("z"));
  EXPECT_EQ(rows.dropped(), 5U);
}

TEST(RowFileFaults, SyncsByItselfSoThatMemoryStaysBounded) {
  MemoryFs memory = with_rows("");
  RowFile rows = RowFile::open(memory, kRows).value();
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(rows.append(std::string(100'000, 'x')));
  }
  EXPECT_GE(
      memory.after_power_loss({}).stat(kRows)->size,
      15U * 100'001U - RowFile::kMaxPendingBytes);
}

TEST(RowFileFaults, RefusesToGoOnInAFileThatSomebodyHasCut) {
  MemoryFs memory = with_rows("a\nb\n");
  FaultFs fs(memory, {.fail_at = 10});
  RowFile rows = RowFile::open(fs, kRows).value();
  ASSERT_TRUE(rows.append("c"));
  ASSERT_EQ(fs.operations(), 10U);
  EXPECT_FALSE(rows.sync());
  memory.truncate(kRows, 1).value();
  EXPECT_EQ(rows.sync().error().detail, "E_TRUNCATED");
}

TEST(RowFileThreads, AnAppendDoesNotWaitForARunningSync) {
  MemoryFs memory = with_rows("");
  std::binary_semaphore in_sync(0);
  std::binary_semaphore go_on(0);
  std::atomic<bool> blocks = false;
  FaultFs fs(memory, {.before = [&](std::string_view op) {
               if (op == "fs.sync" && blocks.exchange(false)) {
                 in_sync.release();
                 go_on.acquire();
               }
             }});
  RowFile rows = RowFile::open(fs, kRows).value();
  ASSERT_TRUE(rows.append("a"));
  blocks = true;
  std::jthread syncing([&] { EXPECT_TRUE(rows.sync()); });
  in_sync.acquire();
  const std::string big(RowFile::kMaxPendingBytes, 'x');
  EXPECT_TRUE(rows.append(big));
  EXPECT_TRUE(rows.append(big)); // would sync, but does not wait for its turn
  EXPECT_EQ(rows_of(memory), "a\n" + big + "\n" + big + "\n");
  go_on.release();
  syncing.join();
  EXPECT_TRUE(rows.sync());
}

TEST(RowFileThreads, AppendsAndSyncsMix) {
  MemoryFs memory = with_rows("");
  FaultFs fs(memory, {.fail_at = 500, .failures = 40});
  RowFile rows = RowFile::open(fs, kRows).value();
  std::atomic<bool> is_done = false;
  std::string text;
  {
    const std::jthread syncing([&] {
      while (!is_done) {
        static_cast<void>(rows.sync());
      }
    });
    for (int i = 0; i < 2000; ++i) {
      text += row(i) + "\n";
      static_cast<void>(rows.append(row(i)));
    }
    is_done = true;
  }
  ASSERT_TRUE(rows.sync());
  EXPECT_EQ(rows.dropped(), 0U);
  MemoryFs later = memory.after_power_loss({});
  EXPECT_TRUE(rows_of(later) == text);
}

using RowFileRealTest = test::RealFiles;

TEST_F(RowFileRealTest, ResumesWhereACheckpointWasTaken) {
  const std::string path = dir_ / "rows.csv";
  std::uint64_t offset = 0;
  {
    RowFile rows = RowFile::open(fs_, path).value();
    ASSERT_TRUE(rows.append("1"));
    offset = rows.size();
    ASSERT_TRUE(rows.sync());
    ASSERT_TRUE(rows.append("2"));
    EXPECT_EQ(RowFile::open(fs_, path).error().detail, "E_LOCKED");
  }
  EXPECT_EQ(get(path), "1\n2\n");
  RowFile rows = RowFile::open(fs_, path, offset).value();
  ASSERT_TRUE(rows.append("two"));
  EXPECT_EQ(get(path), "1\ntwo\n");
  EXPECT_THAT(fs_.list(dir_.path()).value(), ElementsAre("rows.csv"));
}

} // namespace
} // namespace lockstep
