// SPDX-License-Identifier: BSD-3-Clause
//
// Short words for tests on a real GPU. All are skipped where there is none.
//   TEST_F(MyThing_CUDA, Works) { auto x = torch::ones({2}, kGpu); ... }
#pragma once

#include <string>
#include <vector>

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <torch/cuda.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"

namespace lockstep::test {

/// The first GPU.
inline const c10::Device kGpu(c10::DeviceType::CUDA, 0);
inline const c10::Device kHost(c10::DeviceType::CPU);

/// Kernels whose sums have one order, as far as LibTorch has them.
inline void use_deterministic_kernels() {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/true);
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
}

/// Skips without a GPU.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) {
      GTEST_SKIP() << "needs a CUDA device and a LibTorch built for CUDA";
    }
    use_deterministic_kernels();
    torch::manual_seed(4);
  }
};

/// What `run` throws; "no error" if nothing.
template <class F>
Error thrown_by(F&& run) {
  try {
    run();
  } catch (const Exception& e) {
    return e.error();
  }
  return {.message = "no error"};
}

/// The same values, bit for bit, wherever each of them is.
inline bool equal_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.dtype() == b.dtype() && torch::equal(a.cpu(), b.cpu());
}

inline void expect_same(
    const std::vector<at::Tensor>& a,
    const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(equal_bits(a[i], b[i])) << i;
  }
}

inline void expect_close(
    const std::vector<at::Tensor>& a,
    const std::vector<at::Tensor>& b,
    double tolerance = 1e-5) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(torch::allclose(a[i].cpu(), b[i].cpu(), tolerance, tolerance))
        << i << ": " << (a[i].cpu() - b[i].cpu()).abs().max().item<double>();
  }
}

/// Each is on `device`.
inline void expect_on(
    const std::vector<at::Tensor>& tensors,
    c10::Device device) {
  for (const at::Tensor& tensor : tensors) {
    EXPECT_EQ(tensor.device(), device);
  }
}

} // namespace lockstep::test
