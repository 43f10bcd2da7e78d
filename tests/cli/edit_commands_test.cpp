// SPDX-License-Identifier: BSD-3-Clause
//
// The commands that write, from the outside: what they leave on the disk.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/value_walk.h"
#include "lockstep/ckpt/verify.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using testing::ElementsAre;

class EditCommands : public testing::Test {
 protected:
  // Exit status of `lockstep ckpt args`, run in the folder.
  int run(const std::string& args) const {
    const std::string command = format(
        "cd '{}' && '{}' ckpt {} >out.txt 2>err.txt",
        dir_.path(),
        LOCKSTEP_BINARY_DIR "/bin/lockstep",
        args);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
    return WEXITSTATUS(std::system(command.c_str()));
  }
  void put(const std::string& name, const std::string& as) const {
    std::filesystem::copy(
        LOCKSTEP_SOURCE_DIR "/testdata/valid/" + name,
        dir_ / as);
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    return read_text(real_fs(), dir_ / name).value();
  }
  [[nodiscard]] std::vector<std::string> names(const std::string& file) const {
    std::vector<std::string> names;
    const auto loaded = ckpt::load(dir_ / file).value();
    ckpt::for_each_tensor(
        loaded.root,
        [&names](const std::string& name, const ckpt::Tensor&) {
          names.push_back(name);
        })
        .value();
    EXPECT_TRUE(ckpt::verify(dir_ / file).value().is_sound());
    return names;
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return dir_ / name;
  }

 private:
  test::ScratchDir dir_;
};

TEST_F(EditCommands, PrefixAndStripInPlaceKeepTheBytesBefore) {
  put("tiny.pt", "m.pt");
  const std::string before = text("m.pt");
  ASSERT_EQ(run("prefix m.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("m.pt"), ElementsAre("module.w"));
  EXPECT_TRUE(text("m.pt").starts_with(before));
  ASSERT_EQ(run("strip m.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("m.pt"), ElementsAre("w"));
  EXPECT_EQ(run("verify --strict m.pt"), 0) << text("out.txt");
  EXPECT_EQ(run("strip m.pt"), 1);
}

TEST_F(EditCommands, WriteNewFilesAndGuardOldOnes) {
  put("tiny.pt", "m.pt");
  const std::string before = text("m.pt");
  ASSERT_EQ(run("prefix m.pt -o new.pt --prefix a."), 0) << text("err.txt");
  EXPECT_THAT(names("new.pt"), ElementsAre("a.w"));
  EXPECT_EQ(text("m.pt"), before);
  EXPECT_EQ(run("prefix m.pt -o new.pt"), 2);
  EXPECT_THAT(names("new.pt"), ElementsAre("a.w"));
  ASSERT_EQ(run("prefix m.pt -o new.pt --force"), 0);
  EXPECT_THAT(names("new.pt"), ElementsAre("module.w"));
  ASSERT_EQ(run("rename - 's/w/v/' -o piped.pt < m.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("piped.pt"), ElementsAre("v"));
  EXPECT_EQ(run("rename - 's/w/v/' < m.pt"), 2);
}

TEST_F(EditCommands, PickDropMergeAndMatch) {
  put("tiny.pt", "a.pt");
  ASSERT_EQ(run("rename a.pt s/w/v/ -o b.pt"), 0) << text("err.txt");
  ASSERT_EQ(run("merge a.pt b.pt both.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("both.pt"), ElementsAre("w", "v"));
  ASSERT_EQ(run("drop both.pt w"), 0) << text("err.txt");
  EXPECT_THAT(names("both.pt"), ElementsAre("v"));
  EXPECT_EQ(run("merge a.pt a.pt c.pt"), 2);
  EXPECT_FALSE(std::filesystem::exists(path("c.pt")));
  ASSERT_EQ(run("match b.pt a.pt -o c.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("c.pt"), ElementsAre("w"));
  ASSERT_EQ(run("merge a.pt b.pt both.pt --force"), 0);
  ASSERT_EQ(run("pick both.pt v"), 0) << text("err.txt");
}

TEST_F(EditCommands, ConvertInPlaceIsSafe) {
  put("training.pth.tar", "m.pth.tar");
  ASSERT_EQ(run("convert --dtype bfloat16 m.pth.tar m.pth.tar"), 0)
      << text("err.txt");
  const auto file = ckpt::load(path("m.pth.tar")).value();
  std::size_t floats = 0;
  ckpt::for_each_tensor(
      file.root,
      [&floats](const std::string&, const ckpt::Tensor& tensor) {
        EXPECT_NE(tensor.dtype, ckpt::DType::kFloat32);
        floats += tensor.dtype == ckpt::DType::kBFloat16 ? 1 : 0;
      })
      .value();
  EXPECT_GT(floats, 4U);
}

TEST_F(EditCommands, TorchScriptArchivesHaveASummary) {
  put("tiny.pt", "m.pt");
  ASSERT_EQ(run("convert --to libtorch m.pt s.pt"), 0) << text("err.txt");
  EXPECT_EQ(run("s.pt"), 0) << text("err.txt");
  EXPECT_THAT(
      text("out.txt"),
      testing::AllOf(
          testing::HasSubstr("PyTorch TorchScript archive"),
          testing::HasSubstr("all known to TorchScript")));
}

} // namespace
} // namespace lockstep
