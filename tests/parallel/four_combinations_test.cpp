// SPDX-License-Identifier: BSD-3-Clause
//
// The usual combinations with ResNet152: saved by Python on one device or
// many, as weights or as a whole model, loaded here on one device or two; and
// back.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/models/model.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

constexpr const char* kModel = "resnet152";
constexpr const char* kScript = "four_combinations.py";

void clear(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : module.parameters()) {
    parameter.zero_();
  }
}

void expect_same(const StateDict& got, const StateDict& expected) {
  ASSERT_EQ(got.keys(), expected.keys());
  for (const auto& [key, tensor] : expected.entries) {
    ASSERT_TRUE(got.get(key).equal(tensor)) << key;
  }
}

TEST(FourCombinations, LoadInOneCall) {
  const test::ScratchDir folder;
  const auto cases =
      test::python_lines(kScript, {"save", folder.path(), kModel});
  ASSERT_EQ(cases.size(), 5U);
  torch::manual_seed(5);
  const StateDict expected = state_dict(*make_model(kModel));
  const auto one = make_model(kModel);
  const auto inside = make_model(kModel);
  DataParallel many(inside, {.devices = "cpu*2"});
  for (const std::string& file : cases) {
    SCOPED_TRACE(file);
    clear(*one);
    load_weights(*one, folder / file);
    expect_same(state_dict(*one), expected);
    clear(*inside);
    load_weights(*many, folder / file);
    expect_same(state_dict(*inside), expected);
  }
}

TEST(FourCombinations, GoBackToPython) {
  const test::ScratchDir folder;
  torch::manual_seed(5);
  const auto net = make_model(kModel);
  const DataParallel many(net, {.devices = "cpu*2"});
  save(to_value(state_dict(*net)), folder / "one.pth");
  save(to_value(state_dict(*many)), folder / "many.pth");
  EXPECT_EQ(
      test::run_python(
          kScript,
          {"load", folder.path(), kModel, "one.pth", "many.pth"}),
      "same\nsame\n");
}

/// Keeps what is wrapped beside nothing else.
struct Held : torch::nn::Module {
  explicit Held(std::shared_ptr<torch::nn::Module> model) {
    register_module("detector", std::move(model));
  }
};

// Whatever stands around the names of the file: tests/oracle/tensor_wrapped.py.
TEST(WrappedWeights, GoIntoDataParallelAndWhatHoldsIt) {
  const test::ScratchDir folder;
  const auto files = test::python_lines("tensor_wrapped.py", {folder.path()});
  ASSERT_GT(files.size(), 35U);
  const StateDict expected = to_state_dict(load(folder / "bare.pt"));
  torch::nn::Sequential net(torch::nn::Linear(2, 2), torch::nn::BatchNorm1d(2));
  DataParallel model(net, {.devices = "cpu*2"});
  Held held(model.ptr());
  for (const std::string& file : files) {
    for (torch::nn::Module* module :
         {static_cast<torch::nn::Module*>(model.get()),
          static_cast<torch::nn::Module*>(&held)}) {
      SCOPED_TRACE(file);
      clear(*net);
      // 'backbone.' is not 'detector.'.
      if (module == &held && file.find("any") != std::string::npos) {
        EXPECT_THROW(load_weights(*module, folder / file), Exception);
        continue;
      }
      EXPECT_EQ(load_weights(*module, folder / file).taken, 7);
      expect_same(state_dict(*net), expected);
    }
  }
}

} // namespace
} // namespace lockstep
