// SPDX-License-Identifier: BSD-3-Clause
//
// Two replicas of either kind, for cases that say nothing about placement:
// simulated devices and the CPU.
#pragma once

#include <array>
#include <string>

#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "tests/sim/support.h"

namespace lockstep::test {

inline constexpr std::array kKinds{"sim", "cpu"};

/// Where the module of such a pair lives.
inline torch::Device home_of(const std::string& kind) {
  return kind == "cpu" ? torch::Device("cpu") : sim(0);
}

inline DataParallelOptions two(const std::string& kind) {
  return {.devices = kind + "*2"};
}

inline double max_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.cpu() - b.cpu()).abs().max().item<double>();
}

} // namespace lockstep::test
