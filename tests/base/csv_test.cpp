// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/csv.h"

#include <gmock/gmock.h>

#include "lockstep/base/fault_fs.h"
#include "lockstep/base/memory_fs.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kColumns{"step", "loss"};
constexpr const char* kTablePath = "steps.csv";

TEST(CsvRow, QuotesWhatWouldBreakTheTable) {
  const std::vector<std::string> fields{"1", "a,b", "say \"hi\"", "x\ny", ""};
  EXPECT_EQ(csv_row(fields), "1,\"a,b\",\"say \"\"hi\"\"\",\"x\ny\",\n");
}

TEST(CsvFile, HandsEachRowToTheSystemAtOnce) {
  MemoryFs fs;
  auto table = CsvFile::create(fs, kTablePath, kColumns).value();
  EXPECT_EQ(read_text(fs, kTablePath).value(), "step,loss\n");
  ASSERT_TRUE(table.append({"50", "2.5"}));
  EXPECT_EQ(read_text(fs, kTablePath).value(), "step,loss\n50,2.5\n");
  EXPECT_EQ(table.size(), 17U);
}

TEST(CsvFile, CreateEmptiesAnOlderTable) {
  MemoryFs fs;
  ASSERT_TRUE(CsvFile::create(fs, kTablePath, {"a"})->append({"1"}));
  ASSERT_TRUE(CsvFile::create(fs, kTablePath, {"b"}));
  EXPECT_EQ(read_text(fs, kTablePath).value(), "b\n");
}

TEST(CsvFile, RejectsARowOfAnotherWidth) {
  MemoryFs fs;
  auto table = CsvFile::create(fs, kTablePath, kColumns).value();
  const Status status = table.append({"1"});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.error().message, "expected 2 fields, got 1");
}

TEST(CsvFile, ResumeDropsRowsAfterTheCheckpoint) {
  MemoryFs fs;
  auto table = CsvFile::create(fs, kTablePath, kColumns).value();
  ASSERT_TRUE(table.append({"1", "a"}));
  const std::uint64_t at_checkpoint = table.size();
  ASSERT_TRUE(table.append({"2", "lost"}));
  auto later = CsvFile::resume(fs, kTablePath, kColumns, at_checkpoint).value();
  ASSERT_TRUE(later.append({"2", "b"}));
  EXPECT_EQ(read_text(fs, kTablePath).value(), "step,loss\n1,a\n2,b\n");
}

TEST(CsvFile, ResumeStartsAMissingTable) {
  MemoryFs fs;
  ASSERT_TRUE(CsvFile::resume(fs, kTablePath, kColumns, 100));
  EXPECT_EQ(read_text(fs, kTablePath).value(), "step,loss\n");
}

TEST(CsvFile, ResumeRefusesAForeignTableAndLeavesIt) {
  MemoryFs fs;
  ASSERT_TRUE(CsvFile::create(fs, kTablePath, kColumns));
  for (const auto& [columns, bytes] :
       {std::pair(std::vector<std::string>{"other"}, 6U),
        std::pair(kColumns, 11U),
        std::pair(kColumns, 9U)}) {
    const auto refused = CsvFile::resume(fs, kTablePath, columns, bytes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
    EXPECT_THAT(refused.error().message, HasSubstr("got 10 bytes"));
  }
  EXPECT_EQ(read_text(fs, kTablePath).value(), "step,loss\n");
}

TEST(CsvFile, ReportsAFullDisk) {
  MemoryFs memory;
  FaultFs fs(memory, {.byte_budget = 12});
  auto table = CsvFile::create(fs, kTablePath, kColumns).value();
  EXPECT_EQ(table.append({"1", "a"}).error().detail, "E_NO_SPACE");
}

} // namespace
} // namespace lockstep
