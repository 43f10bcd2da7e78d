// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/weight_gradient.h"

#include <ostream>

#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/convolution_backward_native.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/kernels/install.h"
#include "lockstep/parallel/replica_group.h"
#include "lockstep/tensor/internal/cpu_features.h"

namespace lockstep::kernels {
namespace {

// Pieces have LibTorch's bits with AVX-512 only.
std::int64_t here(std::int64_t pieces) {
  return widest_vectors() == VectorWidth::kAvx512 ? pieces : 1;
}

struct Case {
  std::int64_t batch = 64;
  std::int64_t in = 512;
  std::int64_t out = 512;
  std::int64_t map = 1; // of the input: map x map
  std::int64_t stride = 1;
  std::int64_t kernel = 3;
  std::int64_t pieces = 4;
  bool has_bias = false;
  // Of the input and its gradient.
  at::MemoryFormat layout = at::MemoryFormat::Contiguous;

  [[nodiscard]] std::int64_t output_map() const {
    return (map - 1) / stride + 1;
  }
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for it
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.in << "->" << c.out << ", " << c.map << "x" << c.map << " map, "
       << c.kernel << "x" << c.kernel << "/" << c.stride << ", batch "
       << c.batch;
}

class WeightGradient : public testing::TestWithParam<Case> {};

TEST_P(WeightGradient, IsLibTorchsInEveryBit) {
  const Case& c = GetParam();
  if (!parallel::IntraOpThreadsGuard::is_available()) {
    GTEST_SKIP() << "the number of threads is the whole process's";
  }
  install();
  const parallel::IntraOpThreadsGuard one_thread(1);
  torch::manual_seed(5);
  const auto x =
      torch::randn({c.batch, c.in, c.map, c.map}).contiguous(c.layout);
  const auto weight = torch::randn({c.out, c.in, c.kernel, c.kernel});
  const auto grad =
      torch::randn({c.batch, c.out, c.output_map(), c.output_map()});
  EXPECT_EQ(weight_gradient_pieces(grad, x, weight), here(c.pieces));

  const std::vector<std::int64_t> bias = {c.out};
  const std::vector<std::int64_t> strides = {c.stride, c.stride};
  const std::vector<std::int64_t> padding = {c.kernel / 2, c.kernel / 2};
  const std::vector<std::int64_t> ones = {1, 1};
  const std::vector<std::int64_t> none = {0, 0};
  const auto arguments = std::make_tuple(
      grad,
      x,
      weight,
      at::OptionalIntArrayRef(bias),
      at::IntArrayRef(strides),
      at::IntArrayRef(padding),
      at::IntArrayRef(ones),
      false,
      at::IntArrayRef(none),
      std::int64_t{1},
      std::array<bool, 3>{true, true, c.has_bias});
  const auto stock = std::apply(
      [](const auto&... a) { return at::native::convolution_backward(a...); },
      arguments);
  // The first call of a shape may be a comparison, the second its result.
  for (int call = 0; call < 2; ++call) {
    const auto ours = std::apply(
        [](const auto&... a) { return at::convolution_backward(a...); },
        arguments);
    EXPECT_TRUE(torch::equal(std::get<0>(ours), std::get<0>(stock)));
    EXPECT_TRUE(torch::equal(std::get<1>(ours), std::get<1>(stock)));
    EXPECT_EQ(std::get<1>(ours).strides(), std::get<1>(stock).strides());
    EXPECT_EQ(std::get<2>(ours).defined(), c.has_bias);
    if (c.has_bias) {
      EXPECT_TRUE(torch::equal(std::get<2>(ours), std::get<2>(stock)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Convolutions,
    WeightGradient,
    testing::Values(
        Case{},
        Case{.batch = 33, .map = 2},
        Case{.batch = 500},
        Case{.batch = 7, .in = 65, .out = 66, .pieces = 1},
        Case{.in = 128, .out = 64, .map = 2, .stride = 2, .pieces = 1},
        Case{.in = 64, .out = 96, .map = 3, .stride = 3, .pieces = 1},
        Case{.in = 256, .map = 2, .stride = 2},
        Case{.out = 2048, .kernel = 1},
        Case{.batch = 31, .pieces = 1},
        Case{.map = 3, .pieces = 1},
        Case{.in = 64, .out = 256, .pieces = 1},
        Case{.out = 480, .pieces = 1},
        Case{.has_bias = true},
        Case{.map = 2, .pieces = 1, .layout = at::MemoryFormat::ChannelsLast}));

TEST(WeightGradientPieces, AreForOneThread) {
  const auto weight = torch::zeros({512, 512, 3, 3});
  const auto map = torch::zeros({64, 512, 1, 1});
  if (!parallel::IntraOpThreadsGuard::is_available()) {
    GTEST_SKIP() << "the number of threads is the whole process's";
  }
  const parallel::IntraOpThreadsGuard two_threads(2);
  EXPECT_EQ(weight_gradient_pieces(map, map, weight), 1);
  const parallel::IntraOpThreadsGuard one_thread(1);
  EXPECT_EQ(weight_gradient_pieces(map, map, weight), here(4));
  EXPECT_EQ(weight_gradient_pieces(map, map, weight.to(torch::kBFloat16)), 1);
  at::globalContext().setUserEnabledMkldnn(false);
  EXPECT_EQ(weight_gradient_pieces(map, map, weight), 1);
  at::globalContext().setUserEnabledMkldnn(true);
}

} // namespace
} // namespace lockstep::kernels
