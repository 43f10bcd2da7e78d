// SPDX-License-Identifier: BSD-3-Clause
//
// PyTorch and Python's zipfile read what an edit left, also if the edit was
// killed on the way.
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "lockstep/ckpt/edit.h"
#include "tests/support/fault_fs.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::ckpt {
namespace {

Status strip(const std::string& from, const std::string& to, FileSystem& fs) {
  LOCKSTEP_ASSIGN(const Checkpoint file, load(from, {.use_mmap = false}, fs));
  LOCKSTEP_ASSIGN(const Edited edited, strip_prefix(file.root, {}));
  return rewrite(file, edited.root, to, {}, fs);
}

std::string judge(
    const std::string& what,
    const test::ScratchDir& dir,
    const std::string& file) {
  std::vector<std::string> args{what, dir / file};
  if (what == "crash") {
    args.push_back(dir / "wrapped.pt");
  }
  args.push_back(dir / "plain.pt");
  return test::run_python("ckpt_edit.py", args);
}

TEST(EditedFilesOracle, AreWhatPyTorchMakesItself) {
  const test::ScratchDir dir;
  test::run_python("ckpt_edit.py", {"make", dir.path()});
  ASSERT_TRUE(strip(dir / "wrapped.pt", dir / "new.pt", real_fs()));
  EXPECT_EQ(judge("equal", dir, "new.pt"), "equal\n");
  std::filesystem::copy(dir / "wrapped.pt", dir / "edited.pt");
  ASSERT_TRUE(strip(dir / "edited.pt", dir / "edited.pt", real_fs()));
  EXPECT_EQ(judge("equal", dir, "edited.pt"), "equal\n");
}

// Each different file that a kill can leave.
TEST(EditedFilesOracle, AreReadableAfterAKillAtAnyWrite) {
  const test::ScratchDir dir;
  test::run_python("ckpt_edit.py", {"make", dir.path()});
  std::map<std::string, std::uint64_t> left;
  bool finished = false;
  // Reads come first, one for each record; the writes are the last operations.
  constexpr std::uint64_t kMostWrites = 24;
  FaultFs counting(real_fs());
  std::filesystem::copy(dir / "wrapped.pt", dir / "counted.pt");
  ASSERT_TRUE(strip(dir / "counted.pt", dir / "counted.pt", counting));
  for (std::uint64_t n = counting.operations() - kMostWrites; !finished; ++n) {
    std::filesystem::copy(
        dir / "wrapped.pt",
        dir / "killed.pt",
        std::filesystem::copy_options::overwrite_existing);
    FaultFs faulty(
        real_fs(),
        {.fail_at = n,
         .failures = FaultPlan::kNever,
         .short_write_bytes = 70'000});
    finished = strip(dir / "killed.pt", dir / "killed.pt", faulty).has_value();
    if (left.emplace(*read_text(real_fs(), dir / "killed.pt"), n).second) {
      // Killed between the last write and its sync, the file is new already.
      const std::string held = judge("crash", dir, "killed.pt");
      EXPECT_TRUE(held == "new\n" || (held == "old\n" && !finished))
          << n << ": " << held;
    }
  }
  EXPECT_EQ(left.size(), 2U); // the old file and the new one
}

} // namespace
} // namespace lockstep::ckpt
