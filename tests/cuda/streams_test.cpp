// SPDX-License-Identifier: BSD-3-Clause
//
// Copies beside computation, autocast, generators, and what LibTorch does not
// allow beside CUDA.
#include "lockstep/device/internal/streams.h"

#include "lockstep/data/dataset.h"
#include "lockstep/data/loader.h"
#include "lockstep/device/autocast.h"
#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/state_parts.h"
#include "lockstep/train/step/precision.h"
#include "tests/cuda/support.h"

namespace lockstep {
namespace {

using test::equal_bits;
using test::kGpu;
using test::kHost;
using test::thrown_by;
using ::testing::HasSubstr;

class Streams_CUDA : public test::CudaTest {};
class Autocast_CUDA : public test::CudaTest {};
class Generators_CUDA : public test::CudaTest {};
class Sim_CUDA : public test::CudaTest {};

TEST_F(Streams_CUDA, AreThoseOfTheThread) {
  const auto own = current_streams(std::vector{kGpu});
  const auto side = copy_streams(std::vector{kGpu});
  ASSERT_EQ(side.size(), 1U);
  EXPECT_NE(side.front(), own.front());
  const c10::StreamGuard guard(side.front());
  EXPECT_EQ(current_streams(std::vector{kGpu}).front(), side.front());
  EXPECT_TRUE(copy_streams(std::vector{kHost}).empty());
}

// The next batch comes while the one before is still computed with; memory of
// the copies is used again.
TEST_F(Streams_CUDA, FiftyCopiesBesideComputation) {
  constexpr int kCopies = 50;
  const c10::Stream side = copy_streams(std::vector{kGpu}).front();
  for (const bool is_pinned : {true, false}) {
    at::Tensor weight = torch::eye(512, kGpu);
    std::vector<at::Tensor> batches;
    std::vector<at::Tensor> sums;
    for (int i = 0; i < kCopies; ++i) {
      at::Tensor batch = torch::full({4096, 512}, i + 1.0);
      batches.push_back(is_pinned ? batch.pin_memory() : batch);
    }
    for (const at::Tensor& batch : batches) {
      at::Tensor here = copy_in_stream(batch, side);
      EXPECT_EQ(here.device(), kGpu);
      for (int layer = 0; layer < 4; ++layer) {
        here = here.mm(weight);
      }
      sums.push_back(here.sum(at::kDouble));
    }
    for (int i = 0; i < kCopies; ++i) {
      EXPECT_EQ(
          sums[static_cast<std::size_t>(i)].item<double>(),
          (i + 1.0) * 4096 * 512)
          << i << (is_pinned ? " pinned" : "");
    }
  }
}

TEST_F(Streams_CUDA, BatchesOfALoaderArrive) {
  const auto data = std::make_shared<RandomDataset>(64, 1000);
  Loader loader(data, {.batch_size = 100, .workers = 2});
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < data->size(); ++i) {
    order.push_back(i);
  }
  const c10::Stream side = copy_streams(std::vector{kGpu}).front();
  for (int epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(order, epoch);
    std::vector<at::Tensor> parts;
    while (const auto batch = loader.next()) {
      parts.push_back(copy_in_stream(batch->images, side));
    }
    EXPECT_TRUE(equal_bits(torch::cat(parts), data->data()));
  }
}

TEST_F(Autocast_CUDA, ComputesInBfloat16AndKeepsFloatGradients) {
  torch::nn::Linear net(16, 8);
  net->to(kGpu);
  const at::Tensor x = torch::randn({4, 16}, kGpu);
  at::Tensor out;
  {
    const Autocast autocast(at::kCUDA, at::kBFloat16);
    out = net->forward(x);
    EXPECT_EQ(torch::softmax(out, 1).scalar_type(), at::kFloat);
    // The CPU's is another switch.
    EXPECT_EQ(x.cpu().mm(x.cpu().t()).scalar_type(), at::kFloat);
  }
  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  out.sum().backward();
  EXPECT_EQ(net->weight.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(net->forward(x).scalar_type(), at::kFloat);
}

TEST_F(Autocast_CUDA, AutoTakesItWhereItIsFast) {
  if (!is_bfloat16_fast(at::kCUDA)) {
    GTEST_SKIP() << "needs a device of compute capability 8";
  }
  EXPECT_EQ(train::decided_amp({.devices = "cuda:0", .amp = "auto"}), "bf16");
  EXPECT_EQ(train::decided_amp({.amp = "auto"}), "bf16"); // of its own accord
  EXPECT_EQ(train::decided_amp({.devices = "cuda:0"}), "off");
}

TEST_F(Generators_CUDA, APartOfARunRepeatsDropout) {
  const std::vector devices{kGpu};
  train::RunState state;
  state.add(train::generator_part(devices));
  const at::Tensor x = torch::ones({1000}, kGpu);
  const auto draw = [&x] {
    return std::vector{torch::dropout(x, 0.5, true), torch::rand({5}, kGpu)};
  };
  draw();
  const ckpt::Value saved = state.save();
  const ckpt::Tensor* cuda = saved.find("rng")->find("cuda:0")->as_tensor();
  ASSERT_NE(cuda, nullptr);
  EXPECT_EQ(to_tensor(*cuda).numel(), 16);
  const auto expected = draw();
  EXPECT_FALSE(equal_bits(draw()[0], expected[0]));
  EXPECT_TRUE(state.load(saved).empty());
  test::expect_same(draw(), expected);
}

TEST_F(Sim_CUDA, CannotStartBesideIt) {
  const Error refused = thrown_by([] { start_sim({.devices = 2}); });
  EXPECT_EQ(refused.code, ErrorCode::kUnavailable);
  EXPECT_THAT(
      refused.message,
      HasSubstr("LibTorch knows one accelerator per process, and this one has "
                "CUDA"));
  EXPECT_EQ(
      thrown_by([] { parse_devices("sim*2"); }).code,
      ErrorCode::kUnavailable);
  EXPECT_EQ(accelerator_type(), "cuda");
}

} // namespace
} // namespace lockstep
