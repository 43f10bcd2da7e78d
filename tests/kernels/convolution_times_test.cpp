// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/kernels/internal/convolution_times.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/kernels/internal/convolution_products.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::kernels {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr std::int64_t kOne = 1;

std::array<AlgorithmTimes, 3> times_of(
    const at::Tensor& input,
    const at::Tensor& weight) {
  return time_convolution(
      input,
      weight,
      {.stride = kOne, .padding = kOne, .dilation = kOne},
      /*repeats=*/2);
}

std::vector<std::string> ways_of(const AlgorithmTimes& times) {
  std::vector<std::string> names;
  for (const AlgorithmTime& time : times) {
    names.emplace_back(time.algorithm);
  }
  return names;
}

TEST(ConvolutionTimes, AreOfEveryWayThatCanComputeIt) {
  const auto x = torch::randn({32, 64, 2, 2});
  const auto w = torch::randn({64, 64, 3, 3});
  for (const AlgorithmTimes& times : times_of(x, w)) {
    EXPECT_THAT(ways_of(times), ElementsAre("exact", "product"));
  }
  const auto last = at::MemoryFormat::ChannelsLast;
  for (const AlgorithmTimes& times :
       times_of(in_memory_format(x, last), in_memory_format(w, last))) {
    EXPECT_THAT(
        ways_of(times),
        ElementsAre("exact", "winograd", "direct", "product"));
    for (const AlgorithmTime& time : times) {
      EXPECT_GT(time.seconds, 0) << time.algorithm;
    }
  }
}

TEST(ConvolutionTimes, NameTheOneThatIsChosen) {
  const at::Tensor w = torch::randn({64, 64, 3, 3});
  for (const std::int64_t batch : {2, 128}) {
    const auto x = torch::randn({batch, 64, 1, 1});
    const auto products = ConvolutionProducts::of(
        x,
        w,
        {.stride = kOne, .padding = kOne, .dilation = kOne});
    ASSERT_TRUE(products);
    const bool is_better = products->is_better(Pass::kForward);
    EXPECT_EQ(is_better, batch == 128);
    for (const AlgorithmTimes& times : times_of(x, w)) {
      EXPECT_EQ(
          std::ranges::find(times, true, &AlgorithmTime::is_chosen)->algorithm,
          is_better ? "product" : "exact");
      EXPECT_EQ(std::ranges::count(times, true, &AlgorithmTime::is_chosen), 1);
    }
  }
}

TEST(ConvolutionTimes, ExactOnlyWhereThereIsNoOtherWay) {
  const auto x = torch::randn({1, 3, 20, 20}, at::kDouble);
  const auto w = torch::randn({5, 3, 3, 3}, at::kDouble);
  EXPECT_THAT(times_of(x, w), Each(SizeIs(1)));
  EXPECT_ANY_THROW(times_of(x, w.narrow(1, 0, 2)));
}

} // namespace
} // namespace lockstep::kernels
