// SPDX-License-Identifier: BSD-3-Clause
//
// Several programs that write one checkpoint, and what is left of one that
// could not.
#include <gmock/gmock.h>

#include "lockstep/ckpt/edit.h"
#include "tests/cli/command_test.h"

namespace lockstep {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

class WritersTest : public test::CommandTest {
 protected:
  // A loop that saves `file` as the folder d, or is told to wait.
  static std::string saves(const std::string& file) {
    return format(
        "for i in 1 2 3 4 5 6 7 8; do '{}' ckpt convert {} d --to dcp "
        "--force >{}.txt 2>&1 || grep -q E_LOCKED {}.txt || exit 1; done",
        test::kProgram,
        file,
        file,
        file);
  }
};

TEST_F(WritersTest, OneWritesAFolderAtATime) {
  put("tiny.pt", "m.pt");
  ASSERT_EQ(run("prefix m.pt -o n.pt"), 0) << text("err.txt");
  ASSERT_EQ(run("convert m.pt d --to dcp"), 0) << text("err.txt");
  {
    const auto lock = ckpt::lock_for_edit(path("d")).value();
    EXPECT_EQ(run("convert n.pt d --to dcp --force"), 4);
    EXPECT_THAT(text("err.txt"), HasSubstr("(E_LOCKED)"));
  }
  EXPECT_THAT(names("d"), ElementsAre("w"));
  // In place, the command holds the folder itself.
  EXPECT_EQ(run("convert d d --to dcp --force"), 0) << text("err.txt");
  EXPECT_EQ(run("prefix d --prefix a."), 0) << text("err.txt");
  EXPECT_THAT(names("d"), ElementsAre("a.w"));
}

TEST_F(WritersTest, AFolderThatTwoWriteIsWhole) {
  put("tiny.pt", "m.pt");
  ASSERT_EQ(run("prefix m.pt -o n.pt"), 0) << text("err.txt");
  for (int round = 0; round < 8; ++round) {
    const std::string both =
        format("({}) & ({})", saves("m.pt"), saves("n.pt"));
    EXPECT_EQ(shell(both + "; status=$?; wait $! && exit $status"), 0)
        << text("m.pt.txt") << text("n.pt.txt");
    EXPECT_THAT(names("d"), AnyOf(ElementsAre("w"), ElementsAre("module.w")));
  }
}

} // namespace
} // namespace lockstep
