// SPDX-License-Identifier: BSD-3-Clause
//
// Weight files of the tutorial's network between Python and us.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/models/model.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/models/support.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

std::shared_ptr<Model> made(std::uint64_t seed) {
  torch::manual_seed(seed);
  return make_model("resnet18", {.num_classes = 10, .in_channels = 1});
}

TEST(WeightFiles, FromPythonLoadBareAndWrapped) {
  const test::ScratchDir dir;
  const std::string bare = dir / "bare.pth";
  const std::string wrapped = dir / "wrapped.pth";
  (void)test::run_python("models_files.py", {"write", bare, wrapped, "5"});
  const auto net = made(0);
  (void)load_state_dict(*net, load(bare));
  EXPECT_EQ(test::digest(*net), test::digest(*made(5)));
  const auto other = made(1);
  (void)load_state_dict(*other, load(wrapped), {.strip_prefix = "module."});
  EXPECT_EQ(test::digest(*other), test::digest(*made(5)));
}

TEST(WeightFiles, OfOursLoadStrictlyInPython) {
  const test::ScratchDir dir;
  save(to_value(state_dict(*made(6))), dir / "ours.pth");
  EXPECT_EQ(
      test::run_python("models_files.py", {"read", dir / "ours.pth", "6"}),
      "<All keys matched successfully>\nTrue True True\n");
}

} // namespace
} // namespace lockstep
