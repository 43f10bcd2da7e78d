// SPDX-License-Identifier: BSD-3-Clause
//
// Counting on a device: the same sums, and nothing that the host waits for.
#include <cstdlib>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/device/sim_control.h"
#include "tests/metrics/cases.h"

namespace lockstep {
namespace {

TEST(MetricSim, SumsAreCountedOnTheDeviceWithoutCopies) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs yet
  setenv("LOCKSTEP_PLUGIN_PATH", LOCKSTEP_BINARY_DIR "/bin", 1);
  start_sim({.devices = 1});
  for (const test::MetricCase& c : test::metric_cases()) {
    SCOPED_TRACE(c.name);
    const at::Tensor outputs = c.outputs.to("sim");
    const at::Tensor targets = c.targets.to("sim");
    reset_sim_counters(0);
    const at::Tensor sums = c.metric->sums(outputs, targets);
    const SimCounters counters = sim_counters(0);
    EXPECT_EQ(counters.copies_out, 0U);
    EXPECT_EQ(counters.copies_in, 0U);
    EXPECT_GT(counters.operations, 0U);
    EXPECT_EQ(sums.device().str(), "sim:0");
    // Counts are equal; sums of errors are added in another order.
    EXPECT_TRUE(sums.to(at::kCPU).allclose(
        c.metric->sums(c.outputs, c.targets),
        /*rtol=*/1e-13,
        /*atol=*/0,
        /*equal_nan=*/true));
  }
}

} // namespace
} // namespace lockstep
