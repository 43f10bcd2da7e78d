// SPDX-License-Identifier: BSD-3-Clause
//
// Counters, limits, links, failures and numbering of simulated devices.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/internal/plugin.h"
#include "lockstep/device/sim_control.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

using test::error_of;
using test::sim;
using test::torch_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SimDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    reset_sim_counters(kDevice);
    reset_sim_counters(kOther);
    before_ = sim_counters(kDevice).used_bytes;
  }
  void TearDown() override {
    set_sim_memory_limit(kDevice, 0);
    fail_sim_device(kDevice, 0);
    set_sim_link({});
  }
  [[nodiscard]] std::uint64_t used() const {
    return sim_counters(kDevice).used_bytes - before_;
  }
  [[nodiscard]] std::uint64_t peak() const {
    return sim_counters(kDevice).peak_bytes - before_;
  }

  static constexpr std::int32_t kDevice = 6;
  static constexpr std::int32_t kOther = 7;
  std::uint64_t before_ = 0;
};

TEST_F(SimDevice, CountsWhatTensorsHold) {
  auto a = torch::ones({1000}, sim(kDevice));
  EXPECT_EQ(used(), 4000U);
  {
    const auto b = a.view({10, 100}).t();
    EXPECT_EQ(used(), 4000U);
    const auto c = a + 1;
    EXPECT_EQ(used(), 8000U);
  }
  EXPECT_EQ(used(), 4000U);
  EXPECT_EQ(peak(), 8000U);
  a.resize_({2000});
  EXPECT_EQ(used(), 8000U);
  a.reset();
  EXPECT_EQ(used(), 0U);
}

// Results that a CPU kernel allocated count as the device's, until the last
// view of them is gone.
TEST_F(SimDevice, CountsResultsOfKernels) {
  const auto a = torch::ones({100, 100}, sim(kDevice));
  auto [values, indices] = a.sort(1);
  EXPECT_EQ(used(), 40000U + 40000U + 80000U);
  auto view = values[3];
  values.reset();
  EXPECT_EQ(used(), 40000U + 40000U + 80000U);
  view.reset();
  EXPECT_EQ(used(), 40000U + 80000U);
}

TEST_F(SimDevice, LibTorchSeesTheCounters) {
  const auto a = torch::ones({1000}, sim(kDevice));
  const auto stats = at::accelerator::getDeviceStats(kDevice);
  EXPECT_EQ(
      static_cast<std::uint64_t>(stats.allocated_bytes[0].current) - before_,
      4000U);
  set_sim_memory_limit(kDevice, before_ + 10000);
  const auto [free, total] = at::accelerator::getMemoryInfo(kDevice);
  EXPECT_EQ(free, 6000U);
  EXPECT_EQ(total, before_ + 10000);
  EXPECT_EQ(at::accelerator::deviceCount(), 8);
}

TEST_F(SimDevice, LibTorchResetsThePeakAlone) {
  torch::ones({1000}, sim(kDevice));
  const std::uint64_t copied = sim_counters(kDevice).bytes_in;
  const auto a = torch::ones({10}).to(sim(kDevice));
  at::accelerator::resetPeakStats(kDevice);
  at::accelerator::resetAccumulatedStats(kDevice);
  EXPECT_EQ(sim_counters(kDevice).peak_bytes, before_ + 40U);
  EXPECT_EQ(sim_counters(kDevice).bytes_in, copied + 40U);
}

// As CUDA's: the peak becomes what is in use, of this device alone; never
// less, whoever allocates meanwhile.
TEST_F(SimDevice, APeakThatIsResetIsWhatIsInUse) {
  torch::ones({1000}, sim(kOther));
  const std::uint64_t other_peak = sim_counters(kOther).peak_bytes;
  std::atomic<bool> goes_on = true;
  const std::jthread resets([&] {
    while (goes_on) {
      at::accelerator::resetPeakStats(kDevice);
    }
  });
  int below = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto a = torch::empty({1000}, sim(kDevice));
    below += peak() < 4000U ? 1 : 0;
  }
  goes_on = false;
  EXPECT_EQ(below, 0) << "of 20000";
  EXPECT_EQ(sim_counters(kOther).peak_bytes, other_peak);
}

TEST_F(SimDevice, RefusesMemoryPastTheLimit) {
  set_sim_memory_limit(kDevice, before_ + (std::uint64_t{3} << 20));
  const auto a = torch::ones({1 << 19}, sim(kDevice));
  const auto run = [] { torch::ones({1 << 19}, sim(kDevice)); };
  EXPECT_THROW(run(), c10::OutOfMemoryError);
  const std::string text = torch_error(run);
  EXPECT_THAT(
      text,
      HasSubstr("sim out of memory. Tried to allocate 2.00 MiB. Device sim:6"));
  EXPECT_THAT(text, HasSubstr("of which 1.00 MiB is free. 2.00 MiB is in use"));
  // Nothing was counted, and what fits still fits; other devices do not mind.
  EXPECT_EQ(used(), std::uint64_t{2} << 20);
  torch::ones({1 << 17}, sim(kDevice));
  torch::ones({1 << 19}, sim(kOther));
  // A result that a kernel allocates is under the limit as well.
  EXPECT_THROW(a.sort(0), c10::OutOfMemoryError);
  EXPECT_EQ(used(), std::uint64_t{2} << 20);
}

TEST_F(SimDevice, CountsCopiesAndTheirBytes) {
  set_sim_link({.bytes_per_second = 1e12, .latency_seconds = 1e-6});
  const auto a = torch::ones({250}, sim(kDevice));
  EXPECT_EQ(sim_counters(kDevice).copies_in, 0U);
  const auto b = a.to(sim(kOther));
  const auto c = b.cpu();
  auto now = sim_counters(kDevice);
  EXPECT_EQ(now.copies_out, 1U);
  EXPECT_EQ(now.bytes_out, 1000U);
  EXPECT_DOUBLE_EQ(now.copy_seconds, 1.001e-6);
  now = sim_counters(kOther);
  EXPECT_EQ(now.copies_in, 1U);
  EXPECT_EQ(now.bytes_in, 1000U);
  EXPECT_EQ(now.copies_out, 1U);
  EXPECT_DOUBLE_EQ(now.copy_seconds, 2.002e-6);
  a.clone();
  EXPECT_EQ(sim_counters(kDevice).copies_in, 0U);
}

TEST_F(SimDevice, FailsWhenTheScriptSays) {
  const auto a = torch::ones({3}, sim(kDevice));
  const auto b = torch::ones({3}, sim(kOther));
  fail_sim_device(kDevice, 2);
  EXPECT_EQ(torch_error([&] { a.neg(); }), "");
  const std::string text = torch_error([&] { a.exp(); });
  EXPECT_THAT(text, HasSubstr("sim error: device sim:6 failed at operation"));
  EXPECT_THAT(text, HasSubstr("(aten::exp"));
  EXPECT_THAT(text, HasSubstr("as scripted"));
  EXPECT_THROW(a.cpu(), c10::AcceleratorError);
  EXPECT_THAT(
      torch_error([&] { a.to(sim(kOther)); }),
      HasSubstr("device sim:6 is lost since operation"));
  EXPECT_EQ(torch_error([&] { b.exp(); }), "");
  fail_sim_device(kDevice, 0);
  EXPECT_EQ(torch_error([&] { a.exp(); }), "");
}

TEST_F(SimDevice, AbsentDevicesAreNamed) {
  for (const std::int32_t index : {-1, 8}) {
    const Error error = error_of([&] { sim_counters(index); });
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_THAT(error.message, HasSubstr("this process has 8 simulated"));
  }
  const Error error = error_of([] { start_sim({.devices = 9}); });
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("expected 9 simulated devices"));
  EXPECT_THAT(
      error_of([] { start_sim({.devices = 65}); }).message,
      HasSubstr("at most 64"));
  EXPECT_NO_THROW(start_sim());
}

TEST(SimDevices, AreNamedInDeviceLists) {
  EXPECT_EQ(parse_devices("sim").size(), 8U);
  EXPECT_THAT(parse_devices("sim*2"), ElementsAre(sim(0), sim(1)));
  EXPECT_THAT(parse_devices("sim:2,4,5"), ElementsAre(sim(2), sim(4), sim(5)));
  EXPECT_EQ(to_string(parse_devices("sim:1,3")), "sim:1,3");
  EXPECT_EQ(device_count("sim"), 8);
  EXPECT_THAT(
      error_of([] { parse_devices("sim*9"); }).message,
      HasSubstr("sim:8 is not present; this process has 8 sim devices"));
}

TEST(SimDevices, VisibleOnesAreRenumbered) {
  EXPECT_THAT(visible_sim_devices({}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(visible_sim_devices("1,3", 4), ElementsAre(1, 3));
  EXPECT_THAT(visible_sim_devices("3,0,1", 4), ElementsAre(3, 0, 1));
  EXPECT_THAT(visible_sim_devices("", 4), IsEmpty());
  EXPECT_THAT(visible_sim_devices("-1", 4), IsEmpty());
  EXPECT_THAT(visible_sim_devices("2,9,1", 4), ElementsAre(2));
}

TEST(Plugin, SaysWhereItLooked) {
  const Error error = error_of([] { load_plugin("no_such_plugin"); });
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("libno_such_plugin.so is in none of"));
  EXPECT_THAT(error.message, HasSubstr("/bin"));
  EXPECT_THAT(error.hint, HasSubstr("LOCKSTEP_PLUGIN_PATH"));
}

} // namespace
} // namespace lockstep
