// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/internal/thread_state.h"

#include <thread>

#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep {
namespace {

// Runs `look` in a new thread that has taken over this thread's state.
template <class F>
auto in_thread(F look) {
  const ThreadState state = ThreadState::capture();
  decltype(look()) result{};
  std::thread([&] {
    state.apply();
    result = look();
  }).join();
  return result;
}

TEST(ThreadState, CarriesGradientAndInferenceMode) {
  {
    const torch::NoGradGuard no_grad;
    EXPECT_FALSE(in_thread([] { return torch::GradMode::is_enabled(); }));
  }
  EXPECT_TRUE(in_thread([] { return torch::GradMode::is_enabled(); }));
  const c10::InferenceMode inference;
  EXPECT_TRUE(in_thread([] { return c10::InferenceMode::is_enabled(); }));
}

TEST(ThreadState, CarriesAutocastAndItsDtype) {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
  const auto seen = in_thread([] {
    return std::pair(
        at::autocast::is_autocast_enabled(at::kCPU),
        at::autocast::get_autocast_dtype(at::kCPU));
  });
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_TRUE(seen.first);
  EXPECT_EQ(seen.second, at::kHalf);
}

// The smallest denormal doubled: zero where denormals are flushed.
float doubled_denormal() {
  volatile float tiny = 1e-45F;
  return tiny * 2.0F;
}

TEST(ThreadState, CarriesTheTreatmentOfDenormals) {
  if (!at::globalContext().setFlushDenormal(true)) {
    EXPECT_GT(doubled_denormal(), 0.0F);
    return;
  }
  const float seen = in_thread(doubled_denormal);
  at::globalContext().setFlushDenormal(false);
  EXPECT_EQ(seen, 0.0F);
  EXPECT_GT(in_thread(doubled_denormal), 0.0F);
}

TEST(ThreadState, TakesBackWhatATaskChanged) {
  const ThreadState before = ThreadState::capture();
  at::GradMode::set_enabled(false);
  before.apply();
  EXPECT_TRUE(torch::GradMode::is_enabled());

  at::autocast::set_autocast_enabled(at::kCPU, true);
  before.apply();
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));

  const at::ScalarType dtype = at::autocast::get_autocast_dtype(at::kCPU);
  at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
  before.apply();
  EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), dtype);

  at::enableRecordFunction(false);
  before.apply();
  EXPECT_TRUE(at::isRecordFunctionEnabled());

  at::globalContext().setFlushDenormal(true);
  before.apply();
  EXPECT_GT(doubled_denormal(), 0.0F);
}

} // namespace
} // namespace lockstep
