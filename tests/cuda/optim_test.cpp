// SPDX-License-Identifier: BSD-3-Clause
//
// Optimizers with parameters on a GPU, both ways and to the last bit: what one
// side saves after five steps, the other side loads and goes on with.
#include "lockstep/ckpt/load.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/optim/torch_optimizer.h"
#include "lockstep/tensor/checkpoint.h"
#include "tests/cuda/oracle.h"
#include "tests/cuda/support.h"
#include "tests/optim/support.h"
#include "tests/optim/torch_cases.h"

namespace lockstep::test {
namespace {

using ckpt::Value;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class OptimOracle_CUDA : public CudaTest,
                         public ::testing::WithParamInterface<OracleCase> {};
class Optim_CUDA : public CudaTest {};
class TorchOptim_CUDA : public CudaTest,
                        public ::testing::WithParamInterface<TorchCase> {};

Value on_host(const std::string& file) {
  return load(CudaAnswers::get().path(file), {.map_location = "cpu"});
}

Value as_saved(const std::string& file) {
  return load(CudaAnswers::get().path(file));
}

TEST_P(OptimOracle_CUDA, PythonContinuesOurFile) {
  EXPECT_EQ(CudaAnswers::get().verdict(GetParam().name), "same bits");
}

// Python's default on a GPU takes many tensors at once and rounds otherwise.
TEST_P(OptimOracle_CUDA, PythonsDefaultIsClose) {
  EXPECT_THAT(
      CudaAnswers::get().verdict(GetParam().name + ".foreach"),
      AnyOf("same bits", "within 1e-6"));
}

TEST_P(OptimOracle_CUDA, WeContinuePythonsFile) {
  const std::string& name = GetParam().name;
  CudaSession session = CudaSession::start(GetParam());
  session.load(as_saved(name + ".py5.pth"));
  EXPECT_EQ(repr(session.snapshot()), repr(on_host(name + ".py5.pth")))
      << "loading loses something";
  session.steps(5, 10);
  EXPECT_EQ(repr(session.snapshot()), repr(on_host(name + ".py10.pth")));
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    OptimOracle_CUDA,
    ::testing::ValuesIn(cuda_cases()),
    [](const auto& test) { return test.param.name; });

/// What a straight run of six steps ends with.
std::string straight(const TorchCase& test_case) {
  TorchSession session = TorchSession::start(test_case, kGpu);
  session.steps(0, 6);
  return repr(session.snapshot());
}

TEST_P(TorchOptim_CUDA, ARoundTripChangesNoBit) {
  const ScratchDir folder;
  TorchSession first = TorchSession::start(GetParam(), kGpu);
  first.steps(0, 3);
  ckpt::save(folder / "state.pth", first.snapshot()).value();
  TorchSession second = TorchSession::start(GetParam(), kGpu);
  second.load(ckpt::load(folder / "state.pth").value().root);
  expect_on(second.params, kGpu);
  second.steps(3, 6);
  EXPECT_EQ(repr(second.snapshot()), straight(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    TorchOptim_CUDA,
    ::testing::ValuesIn(torch_cases()),
    [](const auto& test) { return test.param.name; });

// The `step` of Python's fused Adam lies on the GPU.
TEST_F(Optim_CUDA, LibTorchsAdamContinuesPythonsFusedOne) {
  const Value saved = as_saved("adam_fused.py5.pth");
  const auto params = cuda_params();
  load_weights_of(saved, params);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector(params.begin(), params.begin() + 3));
  groups.emplace_back(std::vector(params.begin() + 3, params.end()));
  torch::optim::Adam adam(groups);
  load_state_dict(adam, *saved.find("optimizer"));
  for (int step = 5; step < 10; ++step) {
    set_cuda_grads(params, step + 1);
    adam.step();
  }
  const Value expected = as_saved("adam_fused.py10.pth");
  const auto others = cuda_params();
  load_weights_of(expected, others);
  for (std::size_t i = 0; i < params.size(); ++i) {
    EXPECT_TRUE(torch::allclose(params[i], others[i], 1e-5, 1e-6)) << i;
  }
}

// State that was made on one side of the bus goes on on the other.
TEST_F(Optim_CUDA, AFusedStateMovesToTheCpuAndBack) {
  at::Tensor there = torch::ones({4}, kGpu).requires_grad_();
  there.mutable_grad() = torch::ones({4}, kGpu);
  AdamW gpu(std::vector{there}, {.fused = true});
  gpu.step();
  at::Tensor here = there.detach().cpu().requires_grad_();
  here.mutable_grad() = torch::ones({4});
  AdamW cpu(std::vector{here}, {.fused = true});
  cpu.load_state_dict(gpu.state_dict());
  gpu.step();
  cpu.step();
  EXPECT_TRUE(torch::allclose(there.cpu(), here));
  gpu.load_state_dict(cpu.state_dict());
  gpu.step();
  cpu.step();
  EXPECT_TRUE(torch::allclose(there.cpu(), here));
}

TEST_F(Optim_CUDA, PythonsCapturableStateIsRefusedInWords) {
  const Value saved = as_saved("capturable.pth");
  CudaSession session = CudaSession::start(cuda_cases().at(7)); // adam
  const Error refused = error_of(
      [&] { session.optimizer->load_state_dict(*saved.find("optimizer")); });
  EXPECT_EQ(refused.code, ErrorCode::kMismatch);
  EXPECT_THAT(refused.message, HasSubstr("`capturable` is not supported"));
  session.steps(0, 1); // it is as it was
}

TEST_F(Optim_CUDA, ALoanOfThreadsIsForTheCpu) {
  CudaSession plain = CudaSession::start(cuda_cases().front());
  CudaSession lent = CudaSession::start(cuda_cases().front());
  int calls = 0;
  lent.optimizer->use_workers(
      {.count = 2, .run = [&](std::size_t tasks, const Workers::Task& task) {
         ++calls;
         for (std::size_t i = 0; i < tasks; ++i) {
           task(i);
         }
       }});
  plain.steps(0, 3);
  lent.steps(0, 3);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(repr(lent.snapshot()), repr(plain.snapshot()));
}

} // namespace
} // namespace lockstep::test
