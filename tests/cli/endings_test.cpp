// SPDX-License-Identifier: BSD-3-Clause
//
// What the name of a new file says of its format.
#include <filesystem>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "tests/cli/command_test.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

class Endings : public test::CommandTest {};

TEST_F(Endings, ANameThatMeansAnotherFormatIsRefused) {
  put("tiny.pt", "m.pt");
  for (const char* name :
       {"m.onnx",
        "m.h5",
        "m.tflite",
        "m.gguf",
        "m.npy",
        "m.json",
        "m.ONNX",
        "m.safetensor",
        "m.Safetensor",
        "m.nps"}) {
    EXPECT_EQ(run(format("convert m.pt {}", name)), 2) << name;
    EXPECT_THAT(text("err.txt"), HasSubstr("E_ENDING")) << name;
    EXPECT_THAT(text("err.txt"), HasSubstr("--to FORMAT")) << name;
    EXPECT_FALSE(std::filesystem::exists(path(name)));
  }
  EXPECT_EQ(run("prefix m.pt -o p.npz"), 2);
  EXPECT_EQ(run("convert m.pt asked.onnx --to npz"), 0) << text("err.txt");
  EXPECT_EQ(run("convert m.pt lightning.ckpt"), 0) << text("err.txt");
  EXPECT_EQ(run("convert m.pt m.model"), 0) << text("err.txt");
  EXPECT_EQ(run("convert m.pt M.NPZ"), 0) << text("err.txt");
  EXPECT_EQ(ckpt::load(path("M.NPZ")).value().format, "npz");
}

} // namespace
} // namespace lockstep
