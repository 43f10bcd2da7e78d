// SPDX-License-Identifier: BSD-3-Clause
//
// Training for long leaves nothing behind: neither memory nor threads.
#include <algorithm>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/device/sim_control.h"
#include "tests/sim/kinds.h"
#include "tests/support/process_state.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

constexpr int kReplicas = 8;
constexpr int kSteps = 1000;
// A third of a tensor without its elements in each step.
constexpr std::size_t kLeak = kSteps * sizeof(at::TensorImpl) / 3;

std::uint64_t device_bytes() {
  std::uint64_t bytes = 0;
  for (int i = 0; i < kReplicas; ++i) {
    bytes += sim_counters(i).used_bytes;
  }
  return bytes;
}

// malloc keeps some freed blocks for each thread, and fills these stores for
// longer than the first stretch; a leak is in every stretch.
template <class Steps>
std::size_t least_growth(const Steps& steps, std::size_t first) {
  constexpr int kStretches = 5;
  std::size_t least = first;
  for (int i = 1; i < kStretches && least >= kLeak; ++i) {
    const std::size_t before = test::heap_bytes();
    steps(kSteps);
    const std::size_t after = test::heap_bytes();
    least = std::min(least, after - std::min(after, before));
  }
  return least;
}

TEST(MemoryFlat, AfterAThousandStepsOfEightReplicas) {
  for (const std::string kind : test::kKinds) {
    SCOPED_TRACE(kind);
    nn::Sequential net(
        nn::Linear(8, 8),
        nn::BatchNorm1d(8),
        nn::Dropout(0.5),
        nn::Linear(8, 2));
    net->to(test::home_of(kind));
    DataParallel model(
        net,
        {.devices = kind + "*" + std::to_string(kReplicas)});
    const auto x = torch::randn({2 * kReplicas, 8}, test::home_of(kind));
    const auto steps = [&](int count) {
      for (int i = 0; i < count; ++i) {
        model->forward(x).square().mean().backward();
        model->zero_grad();
      }
    };
    steps(kSteps / 2); // caches of the threads and of malloc fill
    const std::size_t heap = test::heap_bytes();
    const std::size_t threads = test::thread_count();
    const std::uint64_t devices = device_bytes();
    steps(kSteps);
    // The engine's threads let go of their last tensors a little later.
    for (int i = 0; i < 500 && device_bytes() > devices; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_LE(device_bytes(), devices);
    EXPECT_EQ(test::thread_count(), threads);
    const std::size_t after = test::heap_bytes();
    EXPECT_LT(least_growth(steps, after - std::min(after, heap)), kLeak);
  }
}

} // namespace
} // namespace lockstep
