// SPDX-License-Identifier: BSD-3-Clause
//
// What must wait for what on devices that work asynchronously: simulated
// devices find the waits that are missing, and DataParallel misses none.
#include <array>

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/device/internal/streams.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/functional.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

using test::same_bits;
using test::sim;
using test::torch_error;
using ::testing::AllOf;
using ::testing::HasSubstr;

c10::Stream other_stream(int device) {
  const c10::impl::VirtualGuardImpl impl(torch::kPrivateUse1);
  return impl.getStreamFromGlobalPool(sim(device));
}

c10::Stream current_stream(int device) {
  const std::array devices = {sim(device)};
  return current_streams(devices).front();
}

void let_wait(const c10::Stream& later, const c10::Stream& earlier) {
  c10::Event event(torch::kPrivateUse1);
  event.record(earlier);
  event.block(later);
}

class StreamOrder : public ::testing::Test {
 protected:
  void SetUp() override {
    check_sim_streams(true);
  }
  void TearDown() override {
    check_sim_streams(false);
  }
};

TEST_F(StreamOrder, AMissingWaitIsNamed) {
  const auto x = torch::ones({4}, sim(0));
  const c10::StreamGuard guard(other_stream(0));
  EXPECT_THAT(
      torch_error([&] { torch::exp(x); }),
      AllOf(
          HasSubstr("aten::exp in stream"),
          HasSubstr("in stream 0 of sim:0 may still be using")));
  EXPECT_THAT(
      torch_error([&] { x.add_(1); }),
      HasSubstr("aten::add in stream"));
}

TEST_F(StreamOrder, AWriteWaitsForReadsToo) {
  const auto x = torch::ones({4}, sim(0));
  const c10::Stream other = other_stream(0);
  let_wait(other, current_stream(0));
  {
    const c10::StreamGuard guard(other);
    torch::exp(x);
  }
  EXPECT_EQ(torch_error([&] { torch::exp(x); }), "");
  EXPECT_THAT(
      torch_error([&] { x.add_(1); }),
      HasSubstr("aten::add in stream 0 of sim:0 uses memory that aten::exp"));
}

TEST_F(StreamOrder, AnEventGivesAnOrder) {
  const auto x = torch::ones({4}, sim(0));
  const c10::Stream other = other_stream(0);
  let_wait(other, current_stream(0));
  {
    const c10::StreamGuard guard(other);
    EXPECT_EQ(torch_error([&] { x.add_(1); }), "");
  }
  let_wait(current_stream(0), other);
  EXPECT_EQ(torch_error([&] { x.add_(1); }), "");
  // An event knows nothing of what comes after it.
  let_wait(other, current_stream(0));
  x.add_(1);
  const c10::StreamGuard guard(other);
  EXPECT_NE(torch_error([&] { x.add_(1); }), "");
}

TEST_F(StreamOrder, TheHostGivesAnOrder) {
  const auto x = torch::ones({4}, sim(0));
  const c10::StreamGuard guard(other_stream(0));
  EXPECT_NE(torch_error([&] { torch::exp(x); }), "");
  c10::impl::VirtualGuardImpl(torch::kPrivateUse1)
      .getDefaultStream(sim(0))
      .synchronize();
  EXPECT_EQ(torch_error([&] { torch::exp(x); }), "");
}

TEST_F(StreamOrder, ACopyBetweenDevicesGivesAnOrder) {
  const auto x = torch::ones({4}, sim(0));
  {
    const c10::StreamGuard there(other_stream(1));
    EXPECT_EQ(torch_error([&] { x.to(sim(1)).add_(1); }), "");
  }
  const c10::StreamGuard there(other_stream(1));
  const c10::StreamGuard here(other_stream(0));
  EXPECT_NE(torch_error([&] { x.to(sim(1)); }), "");
}

TEST_F(StreamOrder, FreedMemoryMustBeKeptForItsUsers) {
  const c10::Stream other = other_stream(0);
  const auto use_and_free = [&](bool keeps) {
    const auto x = torch::ones({4}, sim(0));
    let_wait(other, current_stream(0));
    const c10::StreamGuard guard(other);
    torch::exp(x);
    if (keeps) {
      x.record_stream(other);
    }
  };
  use_and_free(true);
  EXPECT_EQ(torch_error([] { torch::ones({1}, sim(0)); }), "");
  use_and_free(false);
  EXPECT_THAT(
      torch_error([] { torch::ones({1}, sim(0)); }),
      HasSubstr("was freed while aten::exp in stream"));
}

TEST_F(StreamOrder, ABatchIsCopiedInAStreamOfItsOwn) {
  const std::vector<c10::Device> devices = {sim(0), sim(1)};
  const auto batch = torch::arange(6.0);
  const std::vector<c10::Stream> streams = copy_streams(devices);
  const auto shards = parallel::scatter({batch}, devices, 0, streams);
  for (const int d : {0, 1}) {
    const auto shard = shards[static_cast<std::size_t>(d)].front();
    EXPECT_EQ(shard.device(), sim(d));
    // The caller's stream waited; another one would have to.
    EXPECT_EQ(torch_error([&] { torch::exp(shard); }), "");
    const c10::StreamGuard guard(other_stream(d));
    const auto copier =
        "in stream " +
        std::to_string(streams[static_cast<std::size_t>(d)].id());
    EXPECT_THAT(torch_error([&] { torch::exp(shard); }), HasSubstr(copier));
  }
  EXPECT_TRUE(same_bits(shards[1].front(), batch.narrow(0, 3, 3)));
}

// The caller's streams are not the default ones, as under a stream guard in a
// program that overlaps two models.
TEST_F(StreamOrder, DataParallelMissesNoWait) {
  std::vector<torch::Tensor> losses;
  for (const bool is_checked : {true, false}) {
    check_sim_streams(is_checked);
    const c10::StreamGuard first(other_stream(0));
    const c10::StreamGuard second(other_stream(1));
    const c10::StreamGuard third(other_stream(2));
    torch::manual_seed(3);
    torch::nn::Sequential net(
        torch::nn::Conv2d(1, 8, 3),
        torch::nn::BatchNorm2d(8),
        torch::nn::ReLU(),
        torch::nn::Dropout(0.5),
        torch::nn::Flatten(),
        torch::nn::Linear(8 * 36, 5));
    net->to(sim(0));
    DataParallel model(net.ptr(), {.devices = "sim:0,1,2"});
    SGD optimizer(model->parameters(), {.lr = 0.1, .momentum = 0.9});
    torch::Tensor loss;
    for (int step = 0; step < 3; ++step) {
      const auto images = torch::randn({10, 1, 8, 8});
      const auto targets = torch::randint(5, {10}, torch::kLong).to(sim(0));
      optimizer.zero_grad();
      loss =
          torch::nn::functional::cross_entropy(model->forward(images), targets);
      loss.backward();
      optimizer.step();
    }
    losses.push_back(loss.detach().cpu());
  }
  EXPECT_TRUE(same_bits(losses[0], losses[1]));
}

} // namespace
} // namespace lockstep
