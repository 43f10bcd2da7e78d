// SPDX-License-Identifier: BSD-3-Clause
//
// Commands that change a file or folder where the file system has no locks.
#include "tests/support/no_locks.h"

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/cli/command_test.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

class NoLocks : public test::CommandTest {};

TEST_F(NoLocks, CommandsGoOnAndSaySo) {
  put("tiny.pt", "m.pt");
  for (const auto& [edit, name] :
       std::vector<std::pair<std::string, std::string>>{
           {"prefix m.pt", "m.pt"},
           {"convert m.pt m.pt --dtype float16 --force", "m.pt"},
           {"convert m.pt d --to dcp", "d"},
           {"prefix d", "d"}}) {
    const std::string status = test::where_locks_fail(ENOLCK, [&] {
      return std::to_string(run(edit));
    });
    EXPECT_EQ(status, "0") << edit;
    EXPECT_EQ(
        text("err.txt"),
        format(
            "warning: {} cannot be locked, so that others may change it "
            "meanwhile: the file system knows no locks here: No locks "
            "available\n",
            name))
        << edit;
  }
  EXPECT_EQ(
      test::where_locks_fail(
          EIO,
          [&] { return std::to_string(run("prefix m.pt")); }),
      "4");
  EXPECT_THAT(text("err.txt"), HasSubstr("[fs.lock] Input/output error"));
}

} // namespace
} // namespace lockstep
