// SPDX-License-Identifier: BSD-3-Clause
//
// An entry of the weights that holds a tensor in some place, but is none, is
// an unexpected key that is named, as in Python.
#include "tests/ckpt/tensor_slots.h"

#include <fstream>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/tensor/checkpoint.h"
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

} // namespace
} // namespace lockstep
