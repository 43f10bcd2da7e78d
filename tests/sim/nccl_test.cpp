// SPDX-License-Identifier: BSD-3-Clause
//
// The gradient sum by NCCL, against a library with its interface. NCCL itself
// needs GPUs.
#include <dlfcn.h>

#include <cstdlib>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/parallel/internal/nccl_reduce.h"
#include "tests/sim/fake_nccl.h"
#include "tests/sim/support.h"

namespace lockstep {
namespace {

using test::error_of;
using test::FakeNccl;
using test::same_bits;
using test::sim;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kVariable = "LOCKSTEP_NCCL_LIBRARY";
constexpr const char* kLibrary = LOCKSTEP_BINARY_DIR "/bin/libfake_nccl.so";

FakeNccl& fake() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_NODELETE);
  const auto entry =
      reinterpret_cast<test::FakeNcclEntry>(dlsym(library, "fake_nccl"));
  return *entry();
}

class Nccl : public ::testing::Test {
 protected:
  // NOLINTBEGIN(concurrency-mt-unsafe): nothing else reads it meanwhile
  void SetUp() override {
    setenv(kVariable, kLibrary, 1);
    fake() = {};
  }
  void TearDown() override {
    unsetenv(kVariable);
  }
  // NOLINTEND(concurrency-mt-unsafe)
};

TEST_F(Nccl, SumsOnTheFirstDevice) {
  const std::vector<c10::Device> devices = {sim(1), sim(2), sim(0)};
  NcclReduce reduce(devices);
  std::vector<std::vector<torch::Tensor>> terms;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const float value = 1.0F + static_cast<float>(d);
    terms.push_back(
        {torch::full({2, 3}, value, devices[d]),
         torch::full({4}, 1, devices[d]).to(torch::kComplexFloat),
         d == 1 ? torch::Tensor() : torch::ones({2}, devices[d]),
         torch::arange(6.0, devices[d]).view({2, 3}).t()});
  }
  const auto sums = reduce.sum(terms);
  ASSERT_EQ(sums.size(), 4U);
  EXPECT_EQ(sums[0].device(), sim(1));
  EXPECT_TRUE(same_bits(sums[0], torch::full({2, 3}, 6.0F)));
  EXPECT_FALSE(sums[1].defined());
  EXPECT_FALSE(sums[2].defined());
  EXPECT_TRUE(same_bits(sums[3], (torch::arange(6.0) * 3).view({2, 3}).t()));
  EXPECT_EQ(sums[3].strides(), terms[0][3].strides());
  EXPECT_EQ(fake().groups, 1);
  EXPECT_EQ(fake().reductions, 6);
  EXPECT_TRUE(same_bits(terms[0][0], torch::full({2, 3}, 1.0F)));
}

TEST_F(Nccl, WorksInTheCallersStreams) {
  const c10::impl::VirtualGuardImpl impl(torch::kPrivateUse1);
  const c10::StreamGuard first(impl.getNewStream(sim(0), 0));
  const c10::StreamGuard second(impl.getNewStream(sim(1), 0));
  NcclReduce reduce(std::vector<c10::Device>{sim(0), sim(1)});
  static_cast<void>(
      reduce.sum({{torch::ones({2}, sim(0))}, {torch::ones({2}, sim(1))}}));
  EXPECT_THAT(
      fake().streams,
      ElementsAre(first.current_stream().id(), second.current_stream().id()));
}

TEST_F(Nccl, CommunicatorsAreGivenBack) {
  {
    const NcclReduce reduce(std::vector<c10::Device>{sim(0), sim(1)});
    EXPECT_EQ(fake().communicators, 2);
  }
  EXPECT_EQ(fake().communicators, 0);
}

TEST_F(Nccl, DataParallelUsesItOncePerPass) {
  const auto run = [](bool nccl, std::int64_t rows) {
    torch::manual_seed(4);
    const auto net = std::make_shared<torch::nn::LinearImpl>(3, 2);
    net->to(sim(0));
    DataParallel model(net, {.devices = "sim:0,1", .nccl = nccl});
    const auto x = torch::arange(3.0 * static_cast<double>(rows))
                       .view({rows, 3})
                       .to(sim(0));
    model->forward(x).sum().backward();
    return std::vector{net->weight.grad(), net->bias.grad()};
  };
  for (const std::int64_t rows : {4, 1}) {
    fake().groups = 0;
    const auto expected = run(false, rows);
    EXPECT_EQ(fake().groups, 0);
    const auto sums = run(true, rows);
    // A batch of one row uses one device: nothing to sum.
    EXPECT_EQ(fake().groups, rows == 1 ? 0 : 1);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      EXPECT_EQ(sums[i].device(), sim(0));
      EXPECT_TRUE(same_bits(sums[i], expected[i])) << i;
    }
  }
}

TEST_F(Nccl, ItsErrorsAreOurs) {
  NcclReduce reduce(std::vector<c10::Device>{sim(0), sim(1)});
  fake().fails_with = 1;
  const Error failed = error_of([&] {
    static_cast<void>(
        reduce.sum({{torch::ones({2}, sim(0))}, {torch::ones({2}, sim(1))}}));
  });
  EXPECT_EQ(failed.code, ErrorCode::kUnavailable);
  EXPECT_EQ(failed.message, "ncclGroupEnd failed: unhandled cuda error");
}

TEST_F(Nccl, BadDevicesAndLibrariesAreNamed) {
  const auto make = [](std::vector<c10::Device> devices) {
    return error_of([&] { const NcclReduce reduce(devices); });
  };
  EXPECT_EQ(
      make({c10::Device(torch::kCPU), c10::Device(torch::kCPU)}).message,
      "expected different GPUs, got \"cpu*2\"");
  EXPECT_EQ(make({sim(1), sim(1)}).code, ErrorCode::kInvalidArgument);
  // NOLINTBEGIN(concurrency-mt-unsafe): nothing else reads it meanwhile
  setenv(kVariable, "/nowhere/libnccl.so.2", 1);
  EXPECT_THAT(
      make({sim(0), sim(1)}).message,
      AllOf(
          HasSubstr("NCCL does not load"),
          HasSubstr("/nowhere/libnccl.so.2")));
  // One that does not lead to the NCCL of LibTorch, as each of ours would.
  setenv(kVariable, "libm.so.6", 1);
  EXPECT_EQ(
      make({sim(0), sim(1)}).message,
      "the NCCL library has no ncclCommInitAll");
  unsetenv(kVariable);
  // NOLINTEND(concurrency-mt-unsafe)
  EXPECT_EQ(
      make({sim(0), sim(1)}).message,
      "NCCL sums on CUDA devices, not on sim");
}

} // namespace
} // namespace lockstep
