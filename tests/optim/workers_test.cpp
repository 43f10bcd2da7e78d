// SPDX-License-Identifier: BSD-3-Clause
//
// Borrowed threads change who computes, never what.
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/optimizers.h"
#include "tests/optim/support.h"

namespace lockstep::test {
namespace {

struct Case {
  std::string name = {};
  std::function<std::unique_ptr<Optimizer>(std::vector<at::Tensor>)> make = {};
};

template <class Optim, class Options>
Case make_case(const std::string& name, Options options) {
  return {.name = name, .make = [options](std::vector<at::Tensor> params) {
            return std::make_unique<Optim>(std::move(params), options);
          }};
}

const std::vector<Case> kCases = {
    make_case<SGD>("sgd", SGDOptions{.lr = 0.1, .weight_decay = 0.01}),
    make_case<SGD>(
        "momentum",
        SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true}),
    make_case<SGD>(
        "fused_sgd",
        SGDOptions{.lr = 0.1, .momentum = 0.9, .fused = true}),
    make_case<Adam>("adam", AdamOptions{.amsgrad = true}),
    make_case<AdamW>("adamw", AdamOptions{}),
    make_case<AdamW>("fused_adamw", AdamOptions{.fused = true}),
};

// The shared parameters and one that is worth a second thread.
std::vector<at::Tensor> big_params() {
  std::vector<at::Tensor> params = make_params();
  params.push_back(at::full({300, 301}, 0.5).requires_grad_());
  return params;
}

void step_three_times(Optimizer& optimizer, std::vector<at::Tensor>& params) {
  for (int step = 0; step < 3; ++step) {
    set_grads(params, step);
    params.back().mutable_grad() = at::full({300, 301}, 0.1 * (step + 1));
    optimizer.step();
  }
}

Workers counting_workers(std::size_t count, std::atomic<int>& tasks_run) {
  return {
      .count = count,
      .run = [&tasks_run](std::size_t tasks, const Workers::Task& task) {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < tasks; ++i) {
          threads.emplace_back([&, i] {
            task(i);
            ++tasks_run;
          });
        }
      }};
}

class WithWorkers : public testing::TestWithParam<Case> {};

TEST_P(WithWorkers, BitsAreThoseOfOneThread) {
  std::vector<at::Tensor> alone = big_params();
  const auto reference = GetParam().make(alone);
  step_three_times(*reference, alone);
  for (const std::size_t count : {2, 3}) {
    std::vector<at::Tensor> shared = big_params();
    const auto optimizer = GetParam().make(shared);
    std::atomic<int> tasks_run = 0;
    optimizer->use_workers(counting_workers(count, tasks_run));
    step_three_times(*optimizer, shared);
    EXPECT_EQ(tasks_run, 3 * static_cast<int>(count));
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(same_bits(alone[i], shared[i])) << "parameter " << i;
    }
    EXPECT_EQ(repr(optimizer->state_dict()), repr(reference->state_dict()));
  }
}

// One thread updates in blocks; several divide each operation instead.
TEST_P(WithWorkers, BlocksChangeNoBit) {
  const int threads = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> results;
  for (const int count : {1, 2}) {
    at::set_num_threads(count);
    std::vector<at::Tensor> params = {at::arange(90301).cos().requires_grad_()};
    const auto optimizer = GetParam().make(params);
    for (int step = 1; step < 4; ++step) {
      params[0].mutable_grad() = at::arange(90301).mul(step).sin();
      optimizer->step();
    }
    results.push_back(std::move(params));
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(same_bits(results[0][0], results[1][0]));
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers,
    WithWorkers,
    testing::ValuesIn(kCases),
    [](const auto& test) { return test.param.name; });

TEST(Workers, SmallParametersStayWithTheCaller) {
  std::vector<at::Tensor> params = {at::full({8}, 1.0).requires_grad_()};
  SGD optimizer(params, {.lr = 0.5});
  std::atomic<int> tasks_run = 0;
  optimizer.use_workers(counting_workers(2, tasks_run));
  params[0].mutable_grad() = at::full({8}, 1.0);
  optimizer.step();
  EXPECT_EQ(tasks_run, 0);
  EXPECT_EQ(params[0][0].item<float>(), 0.5F);
}

} // namespace
} // namespace lockstep::test
