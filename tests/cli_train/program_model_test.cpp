// SPDX-License-Identifier: BSD-3-Clause
//
// `--model net.pt2`: nets that Python exported, trained by the program.
#include <gmock/gmock.h>

#include "tests/cli_train/process.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::cli_train {
namespace {

using test::Process;
using ::testing::HasSubstr;

class ProgramModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test::run_python("program_images.py", {dir_.path()});
  }
  std::vector<std::string> train(
      const std::string& model,
      const std::vector<std::string>& more = {}) {
    std::vector<std::string> args{
        "train",
        "--model=" + dir_ / model,
        "--threads=1",
        "--epochs=1",
        "--max-train-samples=300",
        "--max-eval-samples=64",
        "--output=" + dir_ / "run"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  const test::ScratchDir dir_;
};

TEST_F(ProgramModelTest, IsTrainedResumedAndReadByPython) {
  Process first(train("net.pt2", {"--devices=cpu*2"}));
  ASSERT_EQ(first.wait(), 0) << first.errors();
  EXPECT_EQ(
      test::run_python(
          "program_images.py",
          {"load", dir_ / "run/checkpoint.pth.tar"}),
      "loaded\n");
  Process second({"train", "--resume", dir_ / "run", "--epochs=2"});
  EXPECT_EQ(second.wait(), 0) << second.errors();
  Process other(
      {"train",
       "--resume",
       dir_ / "run",
       "--epochs=3",
       "--model=" + dir_ / "other.pt2"});
  EXPECT_EQ(other.wait(), 1);
  EXPECT_THAT(
      other.errors(),
      HasSubstr("the checkpoint is of another program; expected the graph"));
  Process eval({"eval", dir_ / "run"});
  EXPECT_EQ(eval.wait(), 0) << eval.errors();
  EXPECT_THAT(eval.output(), HasSubstr("net.pt2, classification, epoch 2"));
}

TEST_F(ProgramModelTest, MustFitTheRun) {
  Process fixed(train("static.pt2"));
  EXPECT_EQ(fixed.wait(), 1);
  EXPECT_THAT(
      fixed.errors(),
      HasSubstr("input 'x' size 0 is the batch, exported for 4"));
  Process few(train("few.pt2"));
  EXPECT_EQ(few.wait(), 1);
  EXPECT_THAT(
      few.errors(),
      HasSubstr("the program has 3 outputs; the data have 10"));
  Process deep(train("deep.pt2"));
  EXPECT_EQ(deep.wait(), 1);
  EXPECT_THAT(
      deep.errors(),
      HasSubstr("a run needs results of 2 dimensions, classes of samples, or "
                "4, classes of pixels; this one gives 3"));
  Process scaled(train("scaled.pt2"));
  EXPECT_EQ(scaled.wait(), 1);
  EXPECT_THAT(scaled.errors(), HasSubstr("this one takes 2 and gives 1"));
  Process missing(train("missing.pt2"));
  EXPECT_EQ(missing.wait(), 4);
}

TEST_F(ProgramModelTest, HasASummary) {
  Process program({"summary", dir_ / "net.pt2"});
  EXPECT_EQ(program.wait(), 0) << program.errors();
  EXPECT_THAT(program.output(), HasSubstr("conv (Conv2d)"));
  EXPECT_THAT(program.output(), HasSubstr("Total params: 186\n"));
}

} // namespace
} // namespace lockstep::cli_train
