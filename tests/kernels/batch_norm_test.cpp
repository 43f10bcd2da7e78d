// SPDX-License-Identifier: BSD-3-Clause
//
// Ours beside LibTorch's operations and beside float64, on shapes that a
// generator with a fixed seed draws. What is installed is the whole process's:
// each test leaves LibTorch's own.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tests/kernels/norm_case.h"

namespace lockstep::kernels {
namespace {

namespace nn = torch::nn;

TEST(BatchNorm, IsAsCloseToFloat64AsLibTorch) {
  torch::manual_seed(21);
  for (unsigned seed = 0; seed < 700; ++seed) {
    const NormCase c(seed);
    const auto theirs = c.results(c.type);
    const auto exact = c.results(at::kDouble);
    const Ours installed;
    const auto ours = c.results(c.type);
    // Of so few numbers an error is luck: two roundings of the result.
    const double precision = std::ldexp(1, c.type == at::kFloat ? -23 : -8);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].defined(), theirs[i].defined()) << i << c.text();
      if (!ours[i].defined()) {
        continue;
      }
      ASSERT_EQ(ours[i].scalar_type(), theirs[i].scalar_type()) << c.text();
      ASSERT_EQ(ours[i].sizes(), theirs[i].sizes()) << c.text();
      const double error = relative_error(c, i, ours[i], exact[i]);
      EXPECT_LE(
          error,
          2 * relative_error(c, i, theirs[i], exact[i]) + precision)
          << i << ": " << c.text();
    }
    EXPECT_EQ(ours[0].strides(), theirs[0].strides()) << c.text();
  }
}

// Where sums are long, the errors themselves are compared.
TEST(BatchNorm, IsAsCloseOnTheSizesOfModels) {
  torch::manual_seed(22);
  for (const auto& [channels, side] :
       {std::pair{64, 14}, {64, 7}, {128, 4}, {256, 2}, {512, 1}, {32, 56}}) {
    for (const auto format :
         {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      for (const double mean : {0.0, 3.0}) {
        NormCase c(1);
        c.channels = channels;
        c.sizes = {64, channels, side, side};
        c.type = at::kFloat;
        c.options = nn::BatchNormOptions(channels);
        c.is_training = true;
        c.after = After::kAddRelu;
        c.input = (at::randn(c.sizes) + mean).contiguous(format);
        c.addend = at::randn(c.sizes).contiguous(format);
        c.grad = at::randn(c.sizes).contiguous(format);
        c.weight = at::rand({channels}) + 0.5;
        c.bias = at::randn({channels});
        const auto theirs = c.results(at::kFloat);
        const auto exact = c.results(at::kDouble);
        const Ours installed;
        const auto ours = c.results(at::kFloat);
        for (std::size_t i = 0; i < ours.size(); ++i) {
          EXPECT_LE(
              relative_error(c, i, ours[i], exact[i]),
              2 * relative_error(c, i, theirs[i], exact[i]) + 1e-8)
              << i << ": " << c.text();
        }
      }
    }
  }
}

TEST(BatchNorm, HasTheSameBitsWithAnyNumberOfThreads) {
  torch::manual_seed(23);
  const Ours installed;
  const int threads = at::get_num_threads();
  for (unsigned seed = 0; seed < 60; ++seed) {
    NormCase c(seed);
    c.sizes[0] += 200; // more than one thread has something to do
    c.is_training = true; // without gradients to LibTorch
    c.type = at::kFloat;
    c.input = c.in_some_layout(at::randn(c.sizes));
    c.addend = c.in_some_layout(at::randn(c.sizes));
    c.grad = c.in_some_layout(at::randn(c.sizes));
    at::set_num_threads(1);
    const auto alone = c.results(c.type);
    for (const int count : {2, 3}) {
      at::set_num_threads(count);
      const auto together = c.results(c.type);
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_TRUE(!alone[i].defined() || torch::equal(alone[i], together[i]))
            << i << ": " << c.text();
      }
    }
  }
  at::set_num_threads(threads);
}

TEST(BatchNorm, CarriesInfAndNan) {
  torch::manual_seed(24);
  const float inf = std::numeric_limits<float>::infinity();
  for (unsigned seed = 0; seed < 200; ++seed) {
    NormCase c(seed);
    for (const float poison : {inf, -inf, NAN}) {
      c.input.select(0, 0).select(0, c.channels - 1).fill_(poison);
      const auto theirs = c.results(c.type);
      const Ours installed;
      const auto ours = c.results(c.type);
      for (std::size_t i = 0; i < ours.size(); ++i) {
        if (ours[i].defined()) {
          EXPECT_TRUE(torch::equal(ours[i].isnan(), theirs[i].isnan()))
              << i << ": " << poison << ": " << c.text();
          EXPECT_TRUE(torch::equal(ours[i].isinf(), theirs[i].isinf()))
              << i << ": " << poison << ": " << c.text();
        }
      }
    }
  }
}

} // namespace
} // namespace lockstep::kernels
