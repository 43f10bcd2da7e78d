// SPDX-License-Identifier: BSD-3-Clause
//
// What works with several devices, on one that is named twice: replicas,
// scatter, gather, the device threads of backward; and NCCL on one GPU.
#include "lockstep/device/internal/streams.h"
#include "lockstep/parallel/functional.h"
#include "lockstep/parallel/internal/broadcast.h"
#include "lockstep/parallel/internal/nccl_reduce.h"
#include "lockstep/parallel/replica_group.h"
#include "tests/cuda/support.h"
#include "tests/parallel/nets.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::equal_bits;
using test::kGpu;
using test::kHost;
using test::thrown_by;
using ::testing::HasSubstr;

class Replicas_CUDA : public test::CudaTest {};
class ScatterGather_CUDA : public test::CudaTest {};
class Nccl_CUDA : public test::CudaTest {};

const std::vector<c10::Device> kTwice{kGpu, kGpu};

ReplicaOutputs call_net(
    std::size_t /*index*/,
    torch::nn::Module& replica,
    const TensorList& shards) {
  auto& net = dynamic_cast<nn::SequentialImpl&>(replica);
  return {.tensors = {net.forward(shards[0])}, .form = "tensor"};
}

/// Output and gradients of one pass over `devices`.
std::vector<at::Tensor> pass_over(
    const std::vector<c10::Device>& devices,
    const at::Tensor& images,
    bool connected = false) {
  torch::manual_seed(7);
  auto net = test::mlp();
  net->to(devices.front());
  ReplicaGroup group(net.ptr(), devices, {.connected_graph = connected});
  at::Tensor out = group.forward({images}, call_net).front();
  EXPECT_EQ(out.device(), devices.front());
  const at::Tensor labels = torch::arange(images.size(0)).remainder(10);
  torch::cross_entropy_loss(out, labels.to(out.device())).backward();
  std::vector<at::Tensor> found = test::gradients_of(*net);
  found.push_back(out.detach());
  return found;
}

TEST_F(Replicas_CUDA, TwoOnOneGpuGiveTheGradientsOfTheWholeBatch) {
  const at::Tensor images = test::images(10);
  const auto expected = pass_over({kHost}, images);
  for (const bool connected : {false, true}) {
    test::expect_close(pass_over(kTwice, images, connected), expected);
    test::expect_close(pass_over(kTwice, images.to(kGpu), connected), expected);
    test::expect_close(
        pass_over(kTwice, images.pin_memory(), connected),
        expected);
  }
}

TEST_F(Replicas_CUDA, RepeatBitForBit) {
  const at::Tensor images = test::images(64);
  const std::vector<c10::Device> four(4, kGpu);
  const auto first = pass_over(four, images);
  for (int again = 0; again < 5; ++again) {
    test::expect_same(pass_over(four, images), first);
  }
}

TEST_F(Replicas_CUDA, StatisticsAreThoseOfTheFirst) {
  torch::manual_seed(7);
  auto net = test::conv_net();
  net->to(kGpu);
  auto alone = std::dynamic_pointer_cast<nn::SequentialImpl>(net->clone());
  const at::Tensor images = test::images(8).to(kGpu);
  ReplicaGroup group(net.ptr(), kTwice);
  for (int step = 0; step < 3; ++step) {
    group.forward({images}, call_net);
    alone->forward(images.slice(0, 0, 4));
  }
  test::expect_same(net->buffers(), alone->buffers());
}

TEST_F(Replicas_CUDA, ComputeInTheStreamOfTheCaller) {
  const at::Tensor images = test::images(16);
  const auto expected = pass_over(kTwice, images);
  const auto streams = copy_streams(std::vector{kGpu});
  ASSERT_EQ(streams.size(), 1U);
  const c10::StreamGuard guard(streams.front());
  test::expect_same(pass_over(kTwice, images), expected);
  streams.front().synchronize();
}

TEST_F(Replicas_CUDA, AnErrorNamesTheReplica) {
  auto net = test::mlp();
  net->to(kGpu);
  ReplicaGroup group(net.ptr(), kTwice);
  try {
    group.forward({torch::ones({4, 1, 9, 9})}, call_net);
    FAIL() << "no error";
  } catch (const ReplicaError& e) {
    EXPECT_EQ(e.replica(), 0U);
    EXPECT_THAT(e.what(), HasSubstr("on device cuda:0"));
  }
}

TEST_F(ScatterGather_CUDA, ChunksAndJoinsWithGradients) {
  for (const c10::Device& from : {kHost, kGpu}) {
    const at::Tensor x =
        torch::randn({5, 4}, torch::kFloat64).to(from).requires_grad_();
    const auto parts = parallel::scatter(TensorList{x}, kTwice);
    ASSERT_EQ(parts.size(), 2U);
    EXPECT_EQ(parts[0][0].size(0), 3);
    EXPECT_EQ(parts[1][0].size(0), 2);
    EXPECT_EQ(parts[1][0].device(), kGpu);
    for (const c10::Device& to : {kHost, kGpu}) {
      const at::Tensor joined =
          parallel::gather({parts[0][0], parts[1][0]}, to);
      EXPECT_EQ(joined.device(), to);
      EXPECT_TRUE(equal_bits(joined.detach(), x.detach()));
      const auto gradients =
          torch::autograd::grad({joined.pow(3).sum()}, {x}, {}, true);
      EXPECT_EQ(gradients[0].device(), from);
      EXPECT_TRUE(torch::allclose(gradients[0], 3 * x.pow(2)));
    }
  }
}

TEST_F(ScatterGather_CUDA, CopiesInStreamsOfTheirOwn) {
  const auto streams = copy_streams(kTwice);
  for (const bool is_pinned : {false, true}) {
    at::Tensor x = torch::randn({1000, 300});
    x = is_pinned ? x.pin_memory() : x;
    const auto parts =
        parallel::scatter(TensorList{x, at::Tensor()}, kTwice, 0, streams);
    EXPECT_FALSE(parts[1][1].defined());
    const at::Tensor sum = parts[0][0].sum() + parts[1][0].sum();
    EXPECT_TRUE(equal_bits(torch::cat({parts[0][0], parts[1][0]}), x));
    EXPECT_NEAR(sum.item<double>(), x.sum().item<double>(), 1.0);
  }
}

TEST_F(ScatterGather_CUDA, ReplicasAreApplied) {
  nn::Linear net(10, 5);
  net->to(kGpu);
  const at::Tensor x = torch::randn({6, 10}, kGpu);
  const auto replicas = parallel::replicate(net.ptr(), kTwice);
  std::vector<at::Tensor> shards;
  for (const TensorList& shard : parallel::scatter(TensorList{x}, kTwice)) {
    shards.push_back(shard[0]);
  }
  const auto outputs = parallel::parallel_apply(replicas, shards, kTwice);
  const at::Tensor joined = parallel::gather(outputs, kHost);
  EXPECT_EQ(joined.device(), kHost);
  EXPECT_TRUE(torch::allclose(joined, net->forward(x).cpu(), 1e-5, 1e-6));
  joined.sum().backward();
  EXPECT_EQ(net->weight.grad().device(), kGpu);
  EXPECT_TRUE(torch::allclose(
      net->weight.grad(),
      x.sum(0).expand({5, 10}),
      1e-5,
      1e-5));
}

TEST_F(ScatterGather_CUDA, ValuesTravelInFewTransfers) {
  const TensorList from{
      torch::randn({3, 3}),
      torch::randn({2, 8, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast),
      torch::arange(7),
      torch::empty({0}),
      torch::randn({})};
  for (const bool there : {true, false}) {
    TensorList source;
    TensorList target;
    for (const at::Tensor& tensor : from) {
      source.push_back(tensor.to(there ? kHost : kGpu));
      target.push_back(torch::empty_like(tensor).to(there ? kGpu : kHost));
    }
    const parallel::Moved moved = parallel::copy_coalesced(source, target);
    EXPECT_EQ(moved.copies, 2U); // one of each dtype
    test::expect_same(target, from);
  }
}

TEST_F(Nccl_CUDA, OneDeviceIsItsOwnSum) {
  NcclReduce reduce(std::vector{kGpu});
  const at::Tensor a = torch::randn({100, 30}, kGpu);
  const at::Tensor half = torch::randn({9}, kGpu).to(at::kBFloat16);
  const at::Tensor whole = torch::arange(5, kGpu);
  for (int again = 0; again < 3; ++again) {
    const auto sums = reduce.sum({{a, half, whole, at::Tensor()}});
    ASSERT_EQ(sums.size(), 4U);
    EXPECT_TRUE(equal_bits(sums[0], a));
    EXPECT_TRUE(equal_bits(sums[1], half));
    EXPECT_TRUE(equal_bits(sums[2], whole));
    EXPECT_FALSE(sums[3].defined());
    EXPECT_FALSE(sums[0].is_alias_of(a));
  }
}

TEST_F(Nccl_CUDA, WorksInAStreamOfTheCaller) {
  NcclReduce reduce(std::vector{kGpu});
  const auto streams = copy_streams(std::vector{kGpu});
  const c10::StreamGuard guard(streams.front());
  const at::Tensor x = torch::ones({1 << 20}, kGpu).mul_(2);
  const at::Tensor sum = reduce.sum({{x}}).front();
  EXPECT_EQ(sum.sum().item<float>(), static_cast<float>(2 << 20));
}

TEST_F(Nccl_CUDA, ADeviceNamedTwiceIsRefused) {
  EXPECT_EQ(
      thrown_by([] { const NcclReduce reduce(kTwice); }).code,
      ErrorCode::kInvalidArgument);
}

} // namespace
} // namespace lockstep
