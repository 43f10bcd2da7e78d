// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/gradient_sum.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/parallel/internal/worker_pool.h"

namespace lockstep::parallel {
namespace {

using Gradients = std::vector<std::vector<at::Tensor>>;

// Replica r's gradients of three rows; together enough to be cut in slices.
Gradients make_gradients(std::size_t replicas) {
  torch::manual_seed(6);
  Gradients gradients(replicas);
  for (auto& rows : gradients) {
    rows = {
        torch::randn({70001}),
        torch::randn({300, 200}).t(),
        torch::randn({7}) * 1e8};
  }
  return gradients;
}

TEST(GradientSum, IsInReplicaOrderForEveryBit) {
  for (const std::size_t replicas : {2U, 3U, 5U}) {
    WorkerPool pool(replicas, 1);
    const Gradients gradients = make_gradients(replicas);
    std::vector<at::Tensor> expected;
    for (std::size_t row = 0; row < 3; ++row) {
      at::Tensor total = gradients[0][row].clone();
      for (std::size_t r = 1; r < replicas; ++r) {
        total = total + gradients[r][row];
      }
      expected.push_back(total);
    }
    const auto sums = sum_in_replica_order(&pool, make_gradients(replicas));
    for (std::size_t row = 0; row < 3; ++row) {
      EXPECT_TRUE(torch::equal(sums[row], expected[row])) << row;
    }
  }
}

TEST(GradientSum, UsesTheFirstBufferIfNothingElseSeesIt) {
  WorkerPool pool(2, 1);
  Gradients owned(2);
  owned[0].push_back(torch::ones({4}));
  owned[1].push_back(torch::ones({4}));
  const void* memory = owned[0][0].data_ptr();
  const auto sums = sum_in_replica_order(&pool, std::move(owned));
  EXPECT_EQ(sums[0].data_ptr(), memory);
  EXPECT_EQ(sums[0].use_count(), 1U);

  const auto kept = torch::ones({4});
  Gradients shared(2);
  shared[0].push_back(kept);
  shared[1].push_back(torch::ones({4}));
  EXPECT_EQ(
      sum_in_replica_order(&pool, std::move(shared))[0][0].item<float>(),
      2);
  EXPECT_EQ(kept[0].item<float>(), 1);

  // An expanded gradient has fewer numbers than places.
  Gradients expanded(2);
  expanded[0].push_back(torch::ones({1}).expand({4}));
  expanded[1].push_back(torch::arange(4, torch::kFloat));
  EXPECT_TRUE(torch::equal(
      sum_in_replica_order(&pool, std::move(expanded))[0],
      torch::arange(4, torch::kFloat) + 1));
}

TEST(GradientSum, UndefinedCountsAsZero) {
  WorkerPool pool(3, 1);
  Gradients gradients(3, std::vector<at::Tensor>(2));
  gradients[1][0] = torch::ones({2});
  gradients[2][0] = torch::ones({2});
  const auto sums = sum_in_replica_order(&pool, std::move(gradients));
  EXPECT_TRUE(torch::equal(sums[0], torch::full({2}, 2.0F)));
  EXPECT_FALSE(sums[1].defined());
}

} // namespace
} // namespace lockstep::parallel
