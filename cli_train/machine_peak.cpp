// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/machine_peak.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include "lockstep/models/internal/layer_times.h"

namespace lockstep::cli_train {
namespace {

// One copy for each width of registers; the loader picks at run time.
#if defined(__x86_64__)
#define LOCKSTEP_EACH_WIDTH \
  __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define LOCKSTEP_EACH_WIDTH
#endif

constexpr std::size_t kLanes = 16;
using Lanes [[gnu::vector_size(kLanes * sizeof(float))]] = float;

// Eight chains: a chain waits four cycles for its last result, and a core
// starts two operations in each.
constexpr std::size_t kChains = 8;

LOCKSTEP_EACH_WIDTH void multiply_add(
    std::array<Lanes, kChains>& chains,
    int rounds) {
  auto [a, b, c, d, e, f, g, h] = chains;
  for (int round = 0; round < rounds; ++round) {
    a = a * 0.999F + 0.001F;
    b = b * 0.999F + 0.001F;
    c = c * 0.999F + 0.001F;
    d = d * 0.999F + 0.001F;
    e = e * 0.999F + 0.001F;
    f = f * 0.999F + 0.001F;
    g = g * 0.999F + 0.001F;
    h = h * 0.999F + 0.001F;
  }
  chains = {a, b, c, d, e, f, g, h};
}

} // namespace

double measure_peak(int threads) {
  constexpr int kRounds = 300'000; // about a millisecond
  constexpr int kWindows = 60;
  constexpr double kOperations = 2.0 * kLanes * kChains * kRounds;
  using Clock = std::chrono::steady_clock;
  double best = 0;
  auto since = Clock::now();
  const auto close_window = [&]() noexcept {
    const auto now = Clock::now();
    const std::chrono::duration<double> took = now - since;
    best = std::max(best, threads * kOperations / took.count());
    since = now;
  };
  std::barrier barrier(threads, close_window);
  const auto work = [&barrier] {
    std::array<Lanes, kChains> chains{};
    for (int window = 0; window < kWindows; ++window) {
      multiply_add(chains, kRounds);
      barrier.arrive_and_wait();
    }
    volatile float result = chains[0][0];
    static_cast<void>(result);
  };
  std::vector<std::jthread> pool;
  pool.reserve(static_cast<std::size_t>(threads) - 1);
  for (int i = 1; i < threads; ++i) {
    pool.emplace_back(work);
  }
  work();
  return best;
}

double measure_device_peak(c10::Device device, c10::ScalarType type) {
  using Clock = std::chrono::steady_clock;
  constexpr std::int64_t kLargest = 16'384;
  constexpr double kLongEnough = 0.01;
  constexpr int kRepeats = 5;
  const at::NoGradGuard no_grad;
  double best = 0;
  double took = 0;
  for (std::int64_t n = 256; n <= kLargest && took < kLongEnough; n *= 2) {
    const at::Tensor a =
        at::ones({n, n}, at::TensorOptions(device).dtype(type));
    at::Tensor product = at::mm(a, a); // the first one sets things up
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      finish_work(device);
      const auto since = Clock::now();
      product = at::mm(a, a);
      finish_work(device);
      took = std::chrono::duration<double>(Clock::now() - since).count();
      const auto size = static_cast<double>(n);
      best = std::max(best, 2 * size * size * size / took);
    }
  }
  return best;
}

} // namespace lockstep::cli_train
