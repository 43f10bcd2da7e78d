// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/rename_new.h"

#include <cerrno>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "tests/base/real_files.h"

namespace lockstep {
namespace {

using RenameNewTest = test::RealFiles;

// Each row: the calls that the file system does not have.
TEST_F(RenameNewTest, NeedsNoSpecialCall) {
  const auto unknown = [](const char*, const char*) {
    errno = EINVAL;
    return -1;
  };
  const auto no_links = [](const char*, const char*) {
    errno = EPERM;
    return -1;
  };
  RenameCalls without_flag = rename_calls();
  without_flag.rename_noreplace = unknown;
  RenameCalls without_both = without_flag;
  without_both.link = no_links;
  for (const auto& calls : {rename_calls(), without_flag, without_both}) {
    write_file_atomically(fs_, dir_ / "a", "mine").value();
    write_file_atomically(fs_, dir_ / "b", "theirs").value();
    const Status refused = rename_new(dir_ / "a", dir_ / "b", calls);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail, "E_EXISTS");
    EXPECT_EQ(read_text(fs_, dir_ / "b").value(), "theirs");
    fs_.remove(dir_ / "b").value();
    rename_new(dir_ / "a", dir_ / "b", calls).value();
    EXPECT_EQ(read_text(fs_, dir_ / "b").value(), "mine");
    EXPECT_FALSE(rename_new(dir_ / "a", dir_ / "c", calls));
    EXPECT_THAT(fs_.list(dir_.path()).value(), testing::ElementsAre("b"));
    fs_.remove(dir_ / "b").value();
  }
}

} // namespace
} // namespace lockstep
