// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/csv.h"

#include <optional>

#include <gmock/gmock.h>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CsvTable, GivesColumnsByTheirNames) {
  const CsvTable table("epoch,loss\n1,0.5\n2,2.5e-1\n");
  EXPECT_THAT(table.column("epoch"), ElementsAre(1, 2));
  EXPECT_THAT(table.column("loss"), ElementsAre(0.5, 0.25));
  EXPECT_THAT(table.column("accuracy"), IsEmpty());
}

TEST(CsvTable, GivesOneCellForEachRow) {
  const CsvTable table("a,b\n1,2\n3,\n5\n7,8\n");
  EXPECT_THAT(
      table.cells("b"),
      ElementsAre(2.0, std::nullopt, std::nullopt, 8.0));
  EXPECT_THAT(CsvTable("").cells("b"), IsEmpty());
}

TEST(CsvTable, LeavesOutWhatIsHalfWritten) {
  EXPECT_THAT(
      CsvTable("epoch,loss\n1,0.5\n2\n3,x\n4,0.2").column("loss"),
      ElementsAre(0.5));
  EXPECT_THAT(CsvTable("").column("loss"), IsEmpty());
  EXPECT_THAT(CsvTable("epoch,loss").column("loss"), IsEmpty());
}

} // namespace
} // namespace lockstep
