// SPDX-License-Identifier: BSD-3-Clause
//
// `lockstep ckpt` on files of torch.export: what is taken out of them, and what
// is put into them.
#include <gmock/gmock.h>

#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/inspect.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/cli/command_test.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ProgramFiles : public test::CommandTest {
 protected:
  void SetUp() override {
    std::filesystem::copy(
        LOCKSTEP_SOURCE_DIR "/testdata/programs/perceptron.pt2",
        path("net.pt2"));
    std::filesystem::copy(
        LOCKSTEP_SOURCE_DIR "/testdata/programs/pictures.pt2",
        path("pictures.pt2"));
  }
  [[nodiscard]] std::string digest_of(const std::string& file) const {
    EXPECT_EQ(run("digest --weights " + file), 0) << text("err.txt");
    return text("out.txt");
  }
};

TEST_F(ProgramFiles, GiveTheirWeightsToEveryFormat) {
  const std::string digest = digest_of("net.pt2");
  for (const char* out :
       {"w.pt", "w.safetensors", "w.npz", "-o x.pt", "--to pt-legacy l.pt"}) {
    ASSERT_EQ(run(format("convert net.pt2 {}", out)), 0) << text("err.txt");
  }
  ASSERT_EQ(run("convert net.pt2 folder --to dcp"), 0) << text("err.txt");
  ASSERT_EQ(run("extract-model net.pt2 m.pt"), 0) << text("err.txt");
  EXPECT_THAT(text("out.txt"), HasSubstr("torch.export.ExportedProgram"));
  for (const char* file :
       {"w.pt", "w.safetensors", "w.npz", "x.pt", "l.pt", "folder", "m.pt"}) {
    EXPECT_EQ(digest_of(file), digest) << file;
  }
  // Constants are left out of what holds weights alone, and named.
  ASSERT_EQ(run("convert pictures.pt2 p.safetensors"), 0) << text("err.txt");
  EXPECT_THAT(text("out.txt"), HasSubstr("left out: constants"));
  ASSERT_EQ(run("convert pictures.pt2 p.pt"), 0);
  EXPECT_EQ(digest_of("p.pt"), digest_of("pictures.pt2"));
  EXPECT_EQ(run("diff p.pt pictures.pt2"), 0) << text("out.txt");
  EXPECT_EQ(run("diff --weights p.safetensors pictures.pt2"), 0)
      << text("out.txt");
}

TEST_F(ProgramFiles, TakeWeightsBack) {
  ASSERT_EQ(run("convert pictures.pt2 w.pt"), 0);
  ASSERT_EQ(run("pick w.pt state_dict -o s.pt"), 0) << text("err.txt");
  auto file = ckpt::load(path("s.pt")).value();
  file.root.set(
      "last.bias",
      ckpt::tensor_of<float>(ckpt::DType::kFloat32, {1, 2, 3}, {3}));
  ckpt::Value whole =
      ckpt::Value::dict({{"epoch", 7}, {"state_dict", std::move(file.root)}});
  ASSERT_TRUE(ckpt::save(path("best.pt"), whole));
  EXPECT_EQ(run("merge pictures.pt2 best.pt out.pt2"), 2);
  EXPECT_THAT(text("err.txt"), HasSubstr("--replace"));
  ASSERT_EQ(run("merge pictures.pt2 best.pt out.pt2 --replace"), 0)
      << text("err.txt");
  EXPECT_THAT(text("out.txt"), HasSubstr("left out: epoch"));
  EXPECT_EQ(digest_of("out.pt2"), digest_of("best.pt"));
  EXPECT_EQ(run("diff pictures.pt2 out.pt2"), 1);
  EXPECT_THAT(text("out.txt"), HasSubstr("state_dict.last.bias"));
  EXPECT_THAT(text("out.txt"), Not(HasSubstr("graph")));
  EXPECT_EQ(run("verify out.pt2"), 0) << text("out.txt");
  ASSERT_EQ(run("average pictures.pt2 out.pt2 -o mean.pt2"), 0)
      << text("err.txt");
  EXPECT_EQ(run("diff net.pt2 pictures.pt2"), 1);
  EXPECT_THAT(text("out.txt"), HasSubstr("graph"));
}

TEST_F(ProgramFiles, KeepTheirNames) {
  const std::string before = digest_of("net.pt2");
  EXPECT_NE(run("rename net.pt2 's/^4/fc/'"), 0);
  EXPECT_THAT(text("err.txt"), HasSubstr("E_PROGRAM_TIED"));
  EXPECT_NE(run("rename net.pt2 's/^4/fc/' --dry-run"), 0);
  EXPECT_NE(run("prefix net.pt2 -o out.pt2"), 0);
  EXPECT_NE(run("drop net.pt2 4 -o out.pt2"), 0);
  EXPECT_NE(run("convert net.pt2 half.pt2 --dtype bfloat16"), 0);
  EXPECT_FALSE(std::filesystem::exists(path("out.pt2")));
  EXPECT_EQ(digest_of("net.pt2"), before);
  ASSERT_EQ(run("rename net.pt2 's/^4/fc/' -o out.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("out.pt"), testing::Contains("fc.weight"));
  ASSERT_EQ(run("pick net.pt2 4 -o head.pt"), 0) << text("err.txt");
  EXPECT_THAT(names("head.pt"), ElementsAre("4.weight", "4.bias"));
}

TEST_F(ProgramFiles, AreMatchedByPosition) {
  ASSERT_EQ(run("rename net.pt2 's/^/x./' -o other.pt"), 0) << text("err.txt");
  ASSERT_EQ(run("match other.pt net.pt2 -o back.pt"), 0) << text("err.txt");
  EXPECT_EQ(digest_of("back.pt"), digest_of("net.pt2"));
  ASSERT_EQ(run("match net.pt2 other.pt -o there.pt"), 0) << text("err.txt");
  EXPECT_EQ(digest_of("there.pt"), digest_of("other.pt"));
}

} // namespace
} // namespace lockstep
