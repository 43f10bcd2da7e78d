// SPDX-License-Identifier: BSD-3-Clause
//
// What this machine gives right now: multiply-add and copy rate with one and
// with two threads. bench/run.py voids a run whose second core is not there.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "bench/serve.h"

namespace {

using Clock = std::chrono::steady_clock;

// Sixteen independent chains, so that latency does not hide throughput.
double multiply_add(int rounds) {
  std::array<float, 256> lanes{};
  lanes.fill(1.0F);
  for (int round = 0; round < rounds; ++round) {
    for (float& lane : lanes) {
      lane = lane * 0.999F + 0.001F;
    }
  }
  volatile float result = lanes[7];
  static_cast<void>(result);
  return 2.0 * 256.0 * rounds;
}

double copy_memory(int rounds) {
  constexpr std::size_t kBytes = 1U << 18U;
  std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes);
  for (int round = 0; round < rounds; ++round) {
    std::memcpy(to.data(), from.data(), kBytes);
    from[0] = to[static_cast<std::size_t>(round) % kBytes];
  }
  return 2.0 * static_cast<double>(kBytes) * rounds;
}

// Work per second that `threads` threads do at the same time.
template <class Work>
double window(std::size_t threads, int rounds, const Work& work) {
  std::vector<double> done(threads);
  const auto start = Clock::now();
  {
    std::vector<std::jthread> pool;
    pool.reserve(threads);
    for (double& amount : done) {
      pool.emplace_back([&] { amount = work(rounds); });
    }
  }
  const std::chrono::duration<double> seconds = Clock::now() - start;
  return std::accumulate(done.begin(), done.end(), 0.0) / seconds.count();
}

// The best of several windows, in 10^9 per second.
template <class Work>
double rate(std::size_t threads, int rounds, const Work& work) {
  double best = 0;
  for (int repeat = 0; repeat < 7; ++repeat) {
    best = std::max(best, window(threads, rounds, work));
  }
  return best / 1e9;
}

} // namespace

int main() {
  lockstep::bench::serve(nlohmann::json::object(), [](const std::string&) {
    return nlohmann::json{
        {"fma_1t", rate(1, 60'000, multiply_add)},
        {"fma_2t", rate(2, 60'000, multiply_add)},
        {"copy_1t", rate(1, 1'000, copy_memory)},
        {"copy_2t", rate(2, 1'000, copy_memory)}};
  });
}
