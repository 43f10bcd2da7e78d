// SPDX-License-Identifier: BSD-3-Clause
//
// LibTorch's optimizers with and without their options, the same in
// tests/oracle/optim_torch.py.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

#include "lockstep/ckpt/value.h"

namespace lockstep::test {

/// An optimizer with two groups: the first three parameters, and the others.
struct TorchCase {
  std::string name = {};
  /// LibTorch computes Python's bits, not just its numbers.
  bool has_pythons_bits = true;
  std::unique_ptr<torch::optim::Optimizer> (*make)(
      const std::vector<at::Tensor>& params) = nullptr;
};

const std::vector<TorchCase>& torch_cases();

/// One case with its parameters (`make_params`).
struct TorchSession {
  std::vector<at::Tensor> params = {};
  std::unique_ptr<torch::optim::Optimizer> optimizer = {};

  static TorchSession start(
      const TorchCase& test_case,
      at::Device device = at::kCPU);
  void steps(int first, int last);
  /// Weights and optimizer; aliases both.
  [[nodiscard]] ckpt::Value snapshot() const;
  void load(const ckpt::Value& saved);
};

} // namespace lockstep::test
