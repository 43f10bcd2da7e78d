// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/internal/replica_pass.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace lockstep::parallel {
namespace {

std::vector<ParameterRow> rows_of(const std::vector<at::Tensor>& parameters) {
  std::vector<ParameterRow> rows;
  rows.reserve(parameters.size());
  for (const at::Tensor& parameter : parameters) {
    rows.push_back({.master = parameter, .leaves = {{parameter}}});
  }
  return rows;
}

ReplicaPass pass_of(TensorList outputs, const std::vector<ParameterRow>& rows) {
  ReplicaPass pass{.outputs = std::move(outputs)};
  find_exits(pass, GraphEnds(rows, 0));
  return pass;
}

TEST(ReplicaPass, ExitsAreTheParametersThatTheGraphLeadsTo) {
  const auto a = torch::ones({2}, torch::requires_grad());
  const auto b = torch::ones({2}, torch::requires_grad());
  const auto frozen = torch::ones({2});
  const auto itself = torch::ones({2}, torch::requires_grad());
  const auto rows = rows_of({a, b, frozen, itself});
  const TensorList outputs = {(a * frozen).relu() + a, {}, frozen, itself};
  const auto exits = pass_of(outputs, rows).exits;
  ASSERT_EQ(exits.size(), 2U);
  EXPECT_EQ(exits[0].row, 0U);
  EXPECT_EQ(exits[0].edge, torch::autograd::impl::gradient_edge(a));
  EXPECT_EQ(exits[1].row, 3U);

  const std::vector<ReplicaPass> passes = {
      {.outputs = outputs, .exits = exits},
      {.outputs = outputs}};
  const TensorList used = used_masters(passes, rows);
  EXPECT_TRUE(used[0].is_same(a));
  EXPECT_FALSE(used[1].defined());
  EXPECT_TRUE(any_requires_grad(passes, 0));
  EXPECT_FALSE(any_requires_grad(passes, 1));
  EXPECT_FALSE(any_requires_grad(passes, 2));
}

TEST(ReplicaPass, ParameterThatIsNoLeafIsFound) {
  const auto base = torch::ones({2}, torch::requires_grad());
  const auto computed = base * 2;
  const auto exits = pass_of({computed.exp()}, rows_of({computed})).exits;
  ASSERT_EQ(exits.size(), 1U);
  EXPECT_EQ(exits[0].edge, torch::autograd::impl::gradient_edge(computed));
}

TEST(ReplicaPass, WithoutGradientsThereAreNone) {
  const auto a = torch::ones({2}, torch::requires_grad());
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(pass_of({a * 2}, rows_of({a})).exits.empty());
}

} // namespace
} // namespace lockstep::parallel
