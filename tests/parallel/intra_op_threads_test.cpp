// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>

#include <thread>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/replica_group.h"
#include "tests/parallel/nets.h"
#include "tests/support/process_state.h"

namespace lockstep::parallel {
namespace {

// Restores the process's number, for the tests that follow.
class IntraOpThreads : public testing::Test {
 protected:
  void TearDown() override {
    at::set_num_threads(before_);
  }
  void SetUp() override {
    if (!IntraOpThreadsGuard::is_available()) {
      GTEST_SKIP() << "this LibTorch keeps no number per thread";
    }
  }

  // MKL's own answer; 0 without MKL.
  static int mkl_threads() {
    void* const found = ::dlsym(RTLD_DEFAULT, "MKL_Get_Max_Threads");
    return found == nullptr ? 0 : reinterpret_cast<int (*)()>(found)();
  }

 private:
  int before_ = at::get_num_threads();
};

TEST_F(IntraOpThreads, AreOneThreadsOwnAndRestored) {
  at::set_num_threads(4);
  const int mkl = mkl_threads();
  {
    const IntraOpThreadsGuard one(1);
    EXPECT_EQ(at::get_num_threads(), 1);
    EXPECT_EQ(mkl_threads(), mkl == 0 ? 0 : 1);
    std::thread([] { EXPECT_EQ(at::get_num_threads(), 4); }).join();
    {
      const IntraOpThreadsGuard nested(3);
      EXPECT_EQ(at::get_num_threads(), 3);
    }
    EXPECT_EQ(at::get_num_threads(), 1);
  }
  EXPECT_EQ(at::get_num_threads(), 4);
  EXPECT_EQ(mkl_threads(), mkl);
}

TEST_F(IntraOpThreads, HoldInAThreadThatAskedNothingYet) {
  at::set_num_threads(4);
  std::thread([] {
    {
      const IntraOpThreadsGuard two(2);
      EXPECT_EQ(at::get_num_threads(), 2);
    }
    EXPECT_EQ(at::get_num_threads(), 4);
  }).join();
}

struct AskImpl : torch::nn::Cloneable<AskImpl> {
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) {
    TORCH_CHECK(x.numel() > 0, "empty");
    // Enough elements for a team of OpenMP's threads.
    torch::ones({1 << 20}).add_(1);
    return torch::full_like(x, at::get_num_threads());
  }
};
TORCH_MODULE(Ask);

TEST_F(IntraOpThreads, OfTheCallerSurviveAJobAndItsError) {
  at::set_num_threads(3);
  // A new thread: no team of its own yet.
  std::thread([] {
    DataParallel model(Ask(), {.devices = "cpu*2", .threads_per_replica = 1});
    const int mkl = mkl_threads();
    const std::size_t threads = test::thread_count();
    const at::Tensor seen = model->forward(torch::zeros({2}));
    EXPECT_TRUE(torch::equal(seen, torch::ones({2})));
    EXPECT_EQ(test::thread_count(), threads);
    EXPECT_THROW(model->forward(torch::zeros({2, 0})), ReplicaError);
    EXPECT_EQ(at::get_num_threads(), 3);
    EXPECT_EQ(mkl_threads(), mkl);
    torch::ones({1 << 20}).add_(1);
    EXPECT_EQ(test::thread_count(), threads + 2);
  }).join();
}

TEST_F(IntraOpThreads, OfTheCallerDoNotReachTheResults) {
  auto net = test::conv_net();
  DataParallel model(net, {.devices = "cpu*2", .threads_per_replica = 1});
  const at::Tensor x = test::images(64);
  std::vector<std::vector<at::Tensor>> results;
  for (const int threads : {1, 4}) {
    at::set_num_threads(threads);
    net->zero_grad();
    const at::Tensor output = model->forward(x);
    output.square().sum().backward();
    results.push_back(test::gradients_of(*net));
    results.back().push_back(output.detach());
  }
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_TRUE(test::bits_equal(results[0][i], results[1][i]));
  }
}

TEST_F(IntraOpThreads, AreSharedWithTheCallerWhoWakesNoTeam) {
  at::set_num_threads(4);
  // A new thread: no team of its own yet.
  std::thread([] {
    DataParallel model(test::mlp(), {.devices = "cpu*2"});
    EXPECT_EQ(at::get_num_threads(), 4);
    {
      const auto two = model->group().share_threads();
      ASSERT_NE(two, nullptr);
      EXPECT_EQ(at::get_num_threads(), 2);
    }
    DataParallel small(
        test::mlp(),
        {.devices = "cpu*2", .threads_per_replica = 1});
    const at::Tensor x = test::images(64);
    const at::Tensor targets = torch::zeros({64}, torch::kLong);
    const auto step = [&] {
      torch::cross_entropy_loss(small->forward(x), targets).backward();
    };
    const std::size_t threads = test::thread_count();
    {
      const auto one = small->group().share_threads();
      step();
      EXPECT_EQ(test::thread_count(), threads);
    }
    step(); // the loss alone makes a team
    EXPECT_EQ(test::thread_count(), threads + 3);
    EXPECT_EQ(at::get_num_threads(), 4);
  }).join();
  DataParallel one(test::mlp(), {.devices = "cpu"});
  EXPECT_EQ(one->group().share_threads(), nullptr);
}

// Holds a wrapper of its own, so that jobs run inside jobs.
struct NestedImpl : torch::nn::Module {
  NestedImpl() : inner(register_module("inner", make())) {}
  static DataParallel<torch::nn::SequentialImpl> make() {
    return DataParallel(test::mlp(), {.devices = "cpu*2"});
  }
  at::Tensor forward(const at::Tensor& x) {
    return inner->forward(x);
  }
  DataParallel<torch::nn::SequentialImpl> inner;
};

TEST_F(IntraOpThreads, AreRightInNestedWrappersUsedByTwoThreads) {
  at::set_num_threads(4);
  const auto net = std::make_shared<NestedImpl>();
  DataParallel model(net, {.devices = "cpu*2", .factory = [] {
                             return std::make_shared<NestedImpl>();
                           }});
  const at::Tensor x = test::images(12);
  const auto gradients = [&] {
    return torch::autograd::grad(
        {model->forward(x).square().sum()},
        net->parameters());
  };
  const auto expected = torch::autograd::grad(
      {net->inner->module()->forward(x).square().sum()},
      net->parameters());
  const auto work = [&] {
    for (int i = 0; i < 20; ++i) {
      const auto now = gradients();
      for (std::size_t p = 0; p < now.size(); ++p) {
        EXPECT_TRUE(torch::allclose(now[p], expected[p], 1e-4, 1e-5));
      }
      EXPECT_EQ(at::get_num_threads(), 4);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

} // namespace
} // namespace lockstep::parallel
