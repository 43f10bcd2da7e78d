// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments and results of any structure, on CPU replicas and on simulated
// devices: what is split, what is repeated, what is joined, what is refused.
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/data_parallel.h"

namespace lockstep {

struct Sample {
  at::Tensor image = {};
  std::vector<at::Tensor> boxes = {};
  std::string split = {};
};
template <>
struct Structure<Sample> : Fields<&Sample::image, &Sample::boxes> {};

namespace {

namespace nn = torch::nn;
using testing::HasSubstr;

using Nested = std::tuple<
    std::vector<at::Tensor>,
    std::map<std::string, at::Tensor>,
    std::pair<at::Tensor, std::optional<at::Tensor>>>;

struct AnyNetImpl : nn::Cloneable<AnyNetImpl> {
  AnyNetImpl() {
    reset();
  }
  void reset() override {
    fc = register_module("fc", nn::Linear(3, 2));
  }
  // Containers in, containers out; numbers and texts reach every replica.
  Nested forward(
      const Nested& in,
      double scale,
      const std::unordered_map<std::string, std::int64_t>& shifts) {
    const auto& [list, dict, pair] = in;
    const auto y = fc->forward(list.at(0)) * scale;
    return {
        {y, list.at(1)},
        {{"a", dict.at("a") + shifts.at("one")}, {"b", y * 2}},
        {pair.first, pair.second}};
  }
  Sample forward(const Sample& sample) {
    return {
        .image = sample.image * 2,
        .boxes = sample.boxes,
        .split = sample.split + "!"};
  }
  at::Tensor forward(std::int64_t rows) {
    return torch::full({rows}, static_cast<double>(rows));
  }
  at::Tensor forward() {
    return torch::ones({2});
  }
  at::Tensor forward(const at::Tensor& x, const std::vector<at::Tensor>& more) {
    return more.empty() ? fc->forward(x) : x + more.front();
  }
  nn::Linear fc = nullptr;
};
TORCH_MODULE(AnyNet);

struct RaggedImpl : nn::Cloneable<RaggedImpl> {
  void reset() override {}
  // As many entries as the shard has rows.
  std::map<std::string, at::Tensor> forward(const at::Tensor& x) {
    std::map<std::string, at::Tensor> out;
    for (std::int64_t i = 0; i < x.size(0); ++i) {
      out["k" + std::to_string(i)] = x;
    }
    return out;
  }
};
TORCH_MODULE(Ragged);

class AnyStructure : public testing::TestWithParam<std::string> {
 protected:
  static torch::Device home() {
    return GetParam() == "cpu" ? torch::Device("cpu")
                               : torch::Device(GetParam() + ":0");
  }
  static DataParallelOptions on(int replicas) {
    return {.devices = GetParam() + "*" + std::to_string(replicas)};
  }
};

TEST_P(AnyStructure, IsSplitAndJoined) {
  AnyNet net;
  net->to(home());
  DataParallel model(net, on(3));
  const auto x = torch::randn({7, 3}, home());
  const auto n = torch::arange(7, home());
  const Nested in{{x, n}, {{"a", n}}, {n, std::nullopt}};
  const std::unordered_map<std::string, std::int64_t> shifts{{"one", 1}};
  const Nested got = model->forward(in, 0.5, shifts);
  const Nested want = net->forward(in, 0.5, shifts);
  EXPECT_TRUE(torch::allclose(std::get<0>(got)[0], std::get<0>(want)[0]));
  EXPECT_TRUE(torch::equal(std::get<0>(got)[1], n));
  EXPECT_TRUE(torch::equal(std::get<1>(got).at("a"), n + 1));
  EXPECT_EQ(std::get<1>(got).size(), 2U);
  EXPECT_TRUE(torch::equal(std::get<2>(got).first, n));
  EXPECT_EQ(std::get<2>(got).second, std::nullopt);
  (std::get<1>(got).at("b").sum() + std::get<0>(got)[0].sum()).backward();
  const auto gradient = net->fc->weight.grad().clone();
  net->zero_grad();
  (std::get<1>(want).at("b").sum() + std::get<0>(want)[0].sum()).backward();
  EXPECT_TRUE(torch::allclose(gradient, net->fc->weight.grad()));
}

TEST_P(AnyStructure, MayBeAStructOfTheUsers) {
  AnyNet net;
  net->to(home());
  DataParallel model(net, on(2));
  const auto x = torch::randn({5, 3}, home());
  const Sample got = model->forward(
      Sample{.image = x, .boxes = {x + 1, x + 2}, .split = "train"});
  EXPECT_TRUE(torch::equal(got.image, x * 2));
  ASSERT_EQ(got.boxes.size(), 2U);
  EXPECT_TRUE(torch::equal(got.boxes[1], x + 2));
  EXPECT_EQ(got.split, "train!");
}

TEST_P(AnyStructure, ValuesAloneReachAllReplicasAndNothingOnlyOne) {
  AnyNet net;
  net->to(home());
  DataParallel model(net, on(3));
  EXPECT_EQ(model->forward(std::int64_t{2}).numel(), 6);
  EXPECT_EQ(model->forward().numel(), 2);
}

TEST_P(AnyStructure, EmptyContainersAreRepeated) {
  AnyNet net;
  net->to(home());
  DataParallel model(net, on(2));
  const auto x = torch::randn({4, 3}, home());
  const std::vector<at::Tensor> none;
  EXPECT_TRUE(torch::allclose(model->forward(x, none), net->forward(x, none)));
  EXPECT_TRUE(
      torch::equal(model->forward(x, std::vector<at::Tensor>{x}), x + x));
}

TEST_P(AnyStructure, MustBeTheSameInAllReplicas) {
  Ragged net;
  DataParallel model(net, on(2));
  const auto x = torch::randn({4, 3}, home());
  EXPECT_EQ(model->forward(x).size(), 2U);
  try {
    model->forward(torch::randn({3, 3}, home()));
    FAIL() << "no error";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, ErrorCode::kMismatch);
    EXPECT_THAT(
        e.error().message,
        HasSubstr("replica 1 returned {k0: tensor}, replica 0 returned {k0: "
                  "tensor, k1: tensor}"));
  }
}

// A loss is a module like any other: scattered targets, one value per device.
TEST_P(AnyStructure, MayBeALoss) {
  DataParallel criterion(nn::CrossEntropyLoss(), on(2));
  const auto scores = torch::randn({6, 4}, home()).requires_grad_();
  const auto targets = torch::randint(4, {6}, torch::kLong).to(home());
  const auto losses = criterion->forward(scores, targets);
  EXPECT_EQ(losses.sizes(), (std::vector<std::int64_t>{2}));
  losses.mean().backward();
  const auto gradient = scores.grad().clone();
  scores.mutable_grad() = at::Tensor();
  nn::functional::cross_entropy(scores, targets).backward();
  EXPECT_TRUE(torch::allclose(gradient, scores.grad()));
}

INSTANTIATE_TEST_SUITE_P(
    Devices,
    AnyStructure,
    testing::Values("cpu", "sim"),
    [](const auto& test) { return test.param; });

} // namespace
} // namespace lockstep
