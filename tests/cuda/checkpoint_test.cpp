// SPDX-License-Identifier: BSD-3-Clause
//
// Files of modules and optimizers that live on a GPU. Their location is "cpu",
// so that any machine reads them, unless the program asks for another.
#include "lockstep/tensor/checkpoint.h"

#include <torch/serialize.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/state_parts.h"
#include "tests/cuda/oracle.h"
#include "tests/cuda/support.h"
#include "tests/parallel/nets.h"

namespace lockstep {
namespace {

using test::CudaAnswers;
using test::equal_bits;
using test::kGpu;
using test::kHost;

class Checkpoint_CUDA : public test::CudaTest {};
class Rng_CUDA : public test::CudaTest {};

std::vector<at::Tensor> tensors_in(const ckpt::Value& weights) {
  std::vector<at::Tensor> tensors;
  for (const auto& [key, tensor] : to_state_dict(weights).entries) {
    tensors.push_back(tensor);
  }
  return tensors;
}

std::vector<at::Tensor> loaded(
    const std::string& file,
    const LoadOptions& options) {
  const Checkpoint found = load(CudaAnswers::get().path(file), options);
  return tensors_in(find_state_dict(found).weights);
}

TEST_F(Checkpoint_CUDA, PythonReadsOurFiles) {
  EXPECT_EQ(CudaAnswers::get().verdict("ours"), "cpu, same bits");
  EXPECT_EQ(CudaAnswers::get().verdict("ours_cuda"), "cuda:0, same bits");
  EXPECT_EQ(CudaAnswers::get().verdict("ours_mapped"), "cuda:0, same bits");
  EXPECT_EQ(CudaAnswers::get().verdict("ours_optimizer"), "ok");
}

TEST_F(Checkpoint_CUDA, OursGoWhereTheyAreSentTo) {
  const auto& expected = CudaAnswers::get().state();
  for (const char* file : {"ours.pth", "ours_cuda.pth"}) {
    const bool is_cuda = std::string(file) == "ours_cuda.pth";
    const auto as_stored = loaded(file, {});
    test::expect_on(as_stored, is_cuda ? kGpu : kHost);
    test::expect_same(as_stored, expected);
    for (const c10::Device& device : {kHost, kGpu}) {
      const auto moved = loaded(file, {.map_location = device});
      test::expect_on(moved, device);
      test::expect_same(moved, expected);
    }
  }
}

// state.pth: a state dict; dict.pth: under a key; ours_resaved.pth: ours, saved
// again; parallel.pth: of nn.DataParallel; whole.pth: the module itself.
TEST_F(Checkpoint_CUDA, PythonsFilesOfTheGpuLoadHere) {
  const auto& expected = CudaAnswers::get().state();
  for (const char* file :
       {"state.pth",
        "dict.pth",
        "ours_resaved.pth",
        "parallel.pth",
        "whole.pth",
        "whole_parallel.pth"}) {
    SCOPED_TRACE(file);
    const auto as_stored = loaded(file, {});
    test::expect_on(as_stored, kGpu);
    test::expect_same(as_stored, expected);
    const auto moved = loaded(file, {.map_location = "cpu"});
    test::expect_on(moved, kHost);
    test::expect_same(moved, expected);
  }
}

TEST_F(Checkpoint_CUDA, ModulesTakeFilesOfAnyDevice) {
  for (const char* file : {"ours.pth", "ours_cuda.pth", "parallel.pth"}) {
    for (const c10::Device& device : {kHost, kGpu}) {
      auto net = test::conv_net();
      net->to(device);
      const Checkpoint found = load(CudaAnswers::get().path(file));
      load_state_dict(
          *net,
          find_state_dict(found).weights,
          {.strip_prefix = "module."});
      test::expect_on(test::state_of(*net), device);
      test::expect_same(test::state_of(*net), CudaAnswers::get().state());
    }
  }
}

TEST_F(Checkpoint_CUDA, ViewsOfOneStorageStayViews) {
  const test::ScratchDir folder;
  const at::Tensor base = torch::arange(12.0, kGpu).view({3, 4});
  ckpt::Value root =
      CheckpointEntry({{"base", base}, {"row", base[1]}}).value();
  for (const bool is_cuda : {false, true}) {
    if (is_cuda) {
      map_locations(root, kGpu);
    }
    ckpt::save(folder / "views.pth", root).value();
    const Checkpoint found = load(folder / "views.pth");
    TensorReader reader;
    const at::Tensor again = reader.tensor(*found["base"].as_tensor());
    const at::Tensor row = reader.tensor(*found["row"].as_tensor());
    EXPECT_EQ(again.device(), is_cuda ? kGpu : kHost);
    EXPECT_TRUE(row.is_alias_of(again));
    EXPECT_TRUE(equal_bits(row, base[1]));
  }
}

TEST_F(Checkpoint_CUDA, OtherDtypesAndLayoutsKeepTheirBits) {
  const test::ScratchDir folder;
  std::vector<at::Tensor> tensors;
  for (const auto dtype :
       {at::kHalf, at::kBFloat16, at::kDouble, at::kLong, at::kBool}) {
    tensors.push_back(torch::arange(24, kGpu).view({1, 2, 3, 4}).to(dtype));
  }
  tensors.push_back(tensors[0].contiguous(at::MemoryFormat::ChannelsLast));
  tensors.push_back(tensors[2].permute({3, 1, 0, 2}));
  tensors.push_back(torch::empty({0, 3}, kGpu));
  for (const at::Tensor& tensor : tensors) {
    save(tensor, folder / "tensor.pth");
    const Checkpoint found =
        load(folder / "tensor.pth", {.map_location = kGpu});
    const at::Tensor again = to_tensor(*found.as_tensor());
    EXPECT_EQ(again.device(), kGpu);
    EXPECT_EQ(again.strides(), tensor.strides());
    EXPECT_TRUE(equal_bits(again, tensor));
  }
}

TEST_F(Checkpoint_CUDA, AnAbsentGpuIsPyTorchsError) {
  const Error error = test::thrown_by([] {
    load(CudaAnswers::get().path("ours.pth"), {.map_location = "cuda:77"});
  });
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(
      error.message,
      ::testing::HasSubstr("Attempting to deserialize object on CUDA device 77 "
                           "but torch.cuda.device_count() is"));
}

TEST_F(Rng_CUDA, PythonTakesOurGenerators) {
  EXPECT_EQ(CudaAnswers::get().verdict("rng"), "same bits");
}

TEST_F(Rng_CUDA, WeTakePythonsGenerators) {
  const Checkpoint saved =
      load(CudaAnswers::get().path("rng_py.pth"), {.map_location = "cpu"});
  const std::vector devices{kGpu};
  train::RunState state;
  state.add(train::generator_part(devices));
  EXPECT_EQ(saved["rng"]["cuda:0"].to<at::Tensor>().numel(), 16);
  EXPECT_TRUE(state.load(saved).empty());
  EXPECT_TRUE(equal_bits(
      torch::rand({100}, kGpu),
      to_tensor(*saved["next"].as_tensor())));
  EXPECT_TRUE(equal_bits(
      torch::dropout(torch::ones({100}, kGpu), 0.5, true),
      to_tensor(*saved["mask"].as_tensor())));
}

} // namespace
} // namespace lockstep
