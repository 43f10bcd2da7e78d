// SPDX-License-Identifier: BSD-3-Clause
//
// Usually without an accelerator; tests/sim has the case with one.
#include <gmock/gmock.h>

#include "lockstep/device/device_list.h"

namespace lockstep {
namespace {

TEST(DefaultDevice, IsTheCpuIfThereIsNothingElseOrItIsAskedFor) {
  const bool is_alone = accelerator_type().empty();
  EXPECT_EQ(default_device().device.is_cpu(), is_alone);
  EXPECT_EQ(default_device().warning, "");
  const DefaultDevice cpu = default_device({.use_accelerator = false});
  EXPECT_TRUE(cpu.device.is_cpu());
  EXPECT_EQ(cpu.warning.empty(), is_alone);
}

TEST(DefaultDevice, WarnsInTheNotesWords) {
  EXPECT_EQ(
      unused_accelerator_text("cuda"),
      "WARNING: It looks like you have a CUDA device, but aren't using CUDA.\n"
      "Run with --cuda for optimal training speed.");
}

} // namespace
} // namespace lockstep
