// SPDX-License-Identifier: BSD-3-Clause
//
// Random streams, errors and threads of replicas.

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/replica_group.h"
#include "tests/parallel/nets.h"
#include "tests/support/process_state.h"

namespace lockstep {
namespace {

using test::bits_equal;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ReplicaStreams, FiftyRunsWithDropoutGiveOneResult) {
  torch::manual_seed(1);
  auto net = test::mlp(0.5);
  const auto x = test::images(30);
  DataParallel model(net, {.devices = "cpu*4"});
  at::Tensor first;
  std::vector<at::Tensor> first_grads;
  for (int run = 0; run < 50; ++run) {
    torch::manual_seed(42);
    net->zero_grad();
    auto out = model->forward(x);
    out = out + model->forward(x);
    out.square().sum().backward();
    const auto grads = test::gradients_of(*net);
    if (run == 0) {
      first = out.detach();
      first_grads = grads;
    }
    ASSERT_TRUE(bits_equal(out.detach(), first)) << run;
    for (std::size_t i = 0; i < grads.size(); ++i) {
      ASSERT_TRUE(bits_equal(grads[i], first_grads[i])) << run;
    }
  }
}

// Each replica gives back random numbers in the place of its rows.
struct NoiseImpl : torch::nn::Cloneable<NoiseImpl> {
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) {
    return torch::rand_like(x);
  }
};
TORCH_MODULE(Noise);

TEST(ReplicaStreams, AreDerivedAsDocumented) {
  DataParallel model(Noise(), {.devices = "cpu*3"});
  torch::manual_seed(21);
  const auto out = model->forward(torch::zeros({6, 100}));
  const auto next = torch::rand({1});

  torch::manual_seed(21);
  const auto seed =
      torch::randint(1LL << 31, {1}, torch::kLong).item<int64_t>();
  const auto next_by_hand = torch::rand({1});
  EXPECT_TRUE(bits_equal(next, next_by_hand));
  for (std::int64_t i = 0; i < 3; ++i) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(
        static_cast<uint64_t>(seed + i));
    const auto expected = at::rand({2, 100}, generator);
    EXPECT_TRUE(bits_equal(out.narrow(0, 2 * i, 2), expected)) << i;
  }
  EXPECT_FALSE(torch::equal(out.narrow(0, 0, 2), out.narrow(0, 2, 2)));
}

TEST(ReplicaStreams, OutsideAPassTheDefaultGeneratorIsUsed) {
  DataParallel model(Noise(), {.devices = "cpu*2"});
  model->forward(torch::zeros({2, 2}));
  torch::manual_seed(5);
  const auto a = torch::randn({8});
  auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  EXPECT_TRUE(bits_equal(a, at::randn({8}, generator)));
  auto explicit_one = at::make_generator<at::CPUGeneratorImpl>(6);
  auto again = at::make_generator<at::CPUGeneratorImpl>(6);
  EXPECT_TRUE(
      bits_equal(at::randperm(9, explicit_one), at::randperm(9, again)));
}

// Throws on the shard that starts with a given number.
struct ThrowerImpl : torch::nn::Cloneable<ThrowerImpl> {
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) {
    const auto first = x[0].item<float>();
    if (first == 1.0F) {
      raise(
          {.code = ErrorCode::kNotFound,
           .op = "test.forward",
           .message = "one",
           .hint = "do this"});
    }
    if (first == 2.0F) {
      TORCH_CHECK(false, "two");
    }
    if (first == 3.0F) {
      throw std::out_of_range("three");
    }
    return x;
  }
};
TORCH_MODULE(Thrower);

TEST(ReplicaErrors, LowestReplicaIsRethrownWithItsCode) {
  DataParallel model(Thrower(), {.devices = "cpu*4"});
  try {
    model->forward(torch::tensor({0.0F, 1.0F, 2.0F, 3.0F}));
    FAIL() << "no error";
  } catch (const ReplicaError& e) {
    EXPECT_EQ(e.replica(), 1U);
    EXPECT_EQ(e.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(
        e.error().message,
        "Caught lockstep::Exception in replica 1 on device cpu.\n"
        "[test.forward] one.");
    EXPECT_EQ(e.error().hint, "do this");
  }
  // All replicas ended; the group works on.
  EXPECT_EQ(model->forward(torch::zeros({4})).numel(), 4);
}

TEST(ReplicaErrors, TorchErrorsLoseTheirBacktrace) {
  DataParallel model(Thrower(), {.devices = "cpu*2"});
  try {
    model->forward(torch::tensor({2.0F, 0.0F}));
    FAIL() << "no error";
  } catch (const ReplicaError& e) {
    EXPECT_EQ(
        e.error().message,
        "Caught c10::Error in replica 0 on device cpu.\ntwo");
    EXPECT_EQ(e.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ReplicaErrors, OriginalTypeIsKept) {
  DataParallel model(Thrower(), {.devices = "cpu*2"});
  try {
    model->forward(torch::tensor({0.0F, 3.0F}));
    FAIL() << "no error";
  } catch (const ReplicaError& e) {
    EXPECT_THAT(
        e.error().message,
        StartsWith("Caught std::out_of_range in replica 1 on device cpu."));
    EXPECT_THROW(std::rethrow_exception(e.cause()), std::out_of_range);
  }
}

struct ThrowsBackward : torch::autograd::Function<ThrowsBackward> {
  static at::Tensor forward(
      torch::autograd::AutogradContext* /*context*/,
      const at::Tensor& x) {
    return x * 2;
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* /*context*/,
      const torch::autograd::variable_list& grads) {
    TORCH_CHECK(grads[0].sum().item<float>() != 2.0F, "no way back");
    return {grads[0]};
  }
};

struct BadBackImpl : torch::nn::Cloneable<BadBackImpl> {
  BadBackImpl() {
    reset();
  }
  void reset() override {
    w = register_parameter("w", torch::ones({1}));
  }
  at::Tensor forward(const at::Tensor& x) {
    return ThrowsBackward::apply(x * w);
  }
  at::Tensor w = {};
};
TORCH_MODULE(BadBack);

TEST(ReplicaErrors, BackwardNamesTheReplica) {
  DataParallel model(BadBack(), {.devices = "cpu*2"});
  const auto out = model->forward(torch::ones({2}));
  try {
    out.backward(torch::tensor({1.0F, 2.0F}));
    FAIL() << "no error";
  } catch (const ReplicaError& e) {
    EXPECT_EQ(
        e.error().message,
        "Caught c10::Error in replica 1 on device cpu.\nno way back");
    EXPECT_EQ(e.error().op, "parallel.backward");
  }
  model->forward(torch::ones({2})).sum().backward();
  EXPECT_EQ(model->parameters()[0].grad().item<float>(), 2.0F);
}

// Changes its parameter inside forward, in place or by replacing the memory.
struct ChangerImpl : torch::nn::Cloneable<ChangerImpl> {
  ChangerImpl() {
    reset();
  }
  void reset() override {
    w = register_parameter("w", torch::ones({1}));
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto first = x[0].item<float>();
    const torch::NoGradGuard no_grad;
    if (first == 1.0F) {
      w.add_(1);
    } else if (first == 2.0F) {
      w.set_data(w + 1);
    }
    return x * w;
  }
  at::Tensor w = {};
};
TORCH_MODULE(Changer);

TEST(ReplicaErrors, ParameterChangedInForwardIsNamed) {
  for (const float kind : {1.0F, 2.0F}) {
    DataParallel model(Changer(), {.devices = "cpu*2"});
    model->forward(torch::zeros({2}));
    try {
      model->forward(torch::tensor({0.0F, kind}));
      FAIL() << "no error";
    } catch (const ReplicaError& e) {
      EXPECT_THAT(
          e.error().message,
          HasSubstr("parameter 'w' was changed inside forward by replica 1"));
      EXPECT_THAT(e.error().hint, HasSubstr("buffer"));
    }
  }
}

struct ElsewhereImpl : torch::nn::Cloneable<ElsewhereImpl> {
  ElsewhereImpl() {
    reset();
  }
  void reset() override {
    register_parameter("w", torch::ones({1}, torch::kMeta));
  }
  at::Tensor forward(const at::Tensor& x) {
    return x;
  }
};
TORCH_MODULE(Elsewhere);

TEST(ReplicaErrors, MasterOnAnotherDeviceHasPyTorchsText) {
  DataParallel model(Elsewhere(), {.devices = "cpu*2"});
  try {
    model->forward(test::images(4));
    FAIL() << "no error";
  } catch (const Exception& e) {
    EXPECT_EQ(
        e.error().message,
        "module must have its parameters and buffers on device cpu "
        "(device_ids[0]) but found one of them on device: meta");
  }
}

TEST(ReplicaThreads, NoneIsMadeAfterTheFirstStep) {
  auto net = test::conv_net();
  DataParallel model(net, {.devices = "cpu*3"});
  const auto step = [&] {
    model->forward(test::images(9)).square().mean().backward();
  };
  step();
  const std::size_t after_first = test::thread_count();
  for (int i = 0; i < 20; ++i) {
    step();
  }
  EXPECT_EQ(test::thread_count(), after_first);
}

TEST(ReplicaThreads, EndWithTheWrapper) {
  const std::size_t before = test::thread_count();
  for (int i = 0; i < 5; ++i) {
    DataParallel model(test::mlp(), {.devices = "cpu*4"});
    // The caller's thread is the fourth, where LibTorch allows it.
    EXPECT_EQ(
        test::thread_count(),
        before + (parallel::IntraOpThreadsGuard::is_available() ? 3 : 4));
    model->forward(test::images(4));
  }
  EXPECT_EQ(test::thread_count(), before);
}

struct ThreadsSeenImpl : torch::nn::Cloneable<ThreadsSeenImpl> {
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) {
    return torch::full_like(x, at::get_num_threads());
  }
};
TORCH_MODULE(ThreadsSeen);

TEST(ReplicaThreads, ShareTheProcesssThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(4);
  DataParallel model(ThreadsSeen(), {.devices = "cpu*2"});
  EXPECT_EQ(model->forward(torch::zeros({2}))[1].item<float>(), 2.0F);
  DataParallel three(
      ThreadsSeen(),
      {.devices = "cpu*2", .threads_per_replica = 3});
  EXPECT_EQ(three->forward(torch::zeros({2}))[0].item<float>(), 3.0F);
  EXPECT_EQ(at::get_num_threads(), 4);
  at::set_num_threads(before);
}

} // namespace
} // namespace lockstep
