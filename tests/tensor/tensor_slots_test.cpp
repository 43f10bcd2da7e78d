// SPDX-License-Identifier: BSD-3-Clause
//
// An entry of the weights that holds a tensor in some place, but is none, is
// an unexpected key that is named, as in Python.
#include "tests/ckpt/tensor_slots.h"

#include <fstream>
#include <tuple>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/tensor/checkpoint.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

struct OneWeight : torch::nn::Module {
  OneWeight() {
    w = register_parameter("w", torch::zeros({2, 2}));
  }
  at::Tensor w;
};

TEST(TensorSlots, NamesEntriesThatHoldTensorsInOtherPlaces) {
  const test::ScratchDir folder;
  for (const ckpt::slots::Slot& slot : ckpt::slots::kSlots) {
    const std::string path = folder / "slot.pt";
    std::ofstream(path, std::ios::binary)
        << ckpt::slots::slot_file(in_slot(slot));
    OneWeight net;
    try {
      load_weights(net, path);
      ADD_FAILURE() << slot.name << ": loaded without a word";
    } catch (const Exception& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("\"x\"")) << slot.name;
    }
    const LoadReport report = load_weights(net, path, {.strict = false});
    EXPECT_THAT(report.unexpected_keys, testing::Contains("x")) << slot.name;
    EXPECT_TRUE(net.w.ne(0).all().item<bool>()) << slot.name;
  }
}

struct OneTable : torch::nn::Module {
  explicit OneTable(const std::string& name) {
    table = register_parameter(name, torch::zeros({10, 3}));
  }
  at::Tensor table;
};

// A piece is never taken for the whole, also where the file has nothing else.
TEST(DTensorsOracle, LoadIfTheFileHasAllOfThemElseTheyAreNamed) {
  const test::ScratchDir folder;
  test::python_lines("ckpt_dtensor.py", {folder.path()});
  const LoadWeightsOptions loose{.strict = false};
  OneTable whole("rows");
  load_weights(whole, folder / "line1.0.pt", loose);
  EXPECT_TRUE(whole.table.equal(torch::arange(30.0).reshape({10, 3})));

  OneTable part("rows");
  OneTable corner("both");
  for (const auto& [net, file, piece] :
       {std::tuple{&part, "line2.1.pt", "rows 5..10 of 10, Shard(0)"},
        std::tuple{
            &corner,
            "grid4.3.pt",
            "[5:10, 2:3] of [10, 3], Shard(0)"}}) {
    try {
      load_weights(*net, folder / file, loose);
      ADD_FAILURE() << file << ": loaded a piece";
    } catch (const Exception& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(piece));
      EXPECT_THAT(error.what(), testing::HasSubstr("the part of one rank"));
    }
    EXPECT_TRUE(net->table.eq(0).all().item<bool>());
  }
}

} // namespace
} // namespace lockstep
