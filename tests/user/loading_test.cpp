// SPDX-License-Identifier: BSD-3-Clause
//
// Files that do not fit, and what the error tells their owner to do.
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"
#include "tests/user/support.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;
using test::error_of;
using ::testing::HasSubstr;
using ::testing::Not;

struct NamesImpl : nn::Module {
  explicit NamesImpl(std::int64_t classes = 2) {
    conv = register_module("conv", nn::Conv2d(1, 4, 3));
    head = register_module("head", nn::Linear(4, classes));
  }
  nn::Conv2d conv = nullptr;
  nn::Linear head = nullptr;
};
TORCH_MODULE(Names);

// The same layers under numbers, as torchvision's old files have them.
nn::Sequential numbers(std::int64_t classes = 2) {
  return nn::Sequential(nn::Conv2d(1, 4, 3), nn::Linear(4, classes));
}

TEST(Loading, ARenamedFileSuggestsByPosition) {
  const test::ScratchDir folder;
  const std::string path = folder.path() + "/renamed.pth";
  const nn::Sequential other = numbers();
  save({{"state_dict", state_dict(*other)}}, path);
  Names net;
  const Error error = error_of([&] { load_weights(*net, path); });
  EXPECT_THAT(error.message, HasSubstr("Missing key(s) in state_dict: "));
  EXPECT_EQ(
      error.hint,
      "shapes agree in order, only names differ: load with "
      ".by_position = true, or rename with 'lockstep ckpt match'");
  load_weights(*net, path, {.by_position = true});
  EXPECT_TRUE(torch::equal(
      net->conv->weight,
      other->children().at(0)->as<nn::Conv2d>()->weight));
  // A wrapped model gets the better advice.
  DataParallel wrapped(net, {.devices = "cpu"});
  EXPECT_THAT(
      error_of([&] { load_state_dict(*wrapped, state_dict(*net)); }).hint,
      HasSubstr(".add_prefix"));
}

TEST(Loading, OtherShapesDoNotSuggestByPosition) {
  Names net;
  EXPECT_THAT(
      error_of([&] { load_state_dict(*net, state_dict(*numbers(5))); }).hint,
      Not(HasSubstr(".by_position")));
}

TEST(Loading, ByPositionShowsBothShapes) {
  Names net;
  const StateDict other = state_dict(*numbers(5));
  const Error error =
      error_of([&] { load_state_dict(*net, other, {.by_position = true}); });
  EXPECT_THAT(error.message, HasSubstr("Missing key(s) in state_dict: "));
  EXPECT_EQ(
      error.hint,
      "by position both must have the same shapes: entry 3 is '1.weight' "
      "[5, 4] in the file, 'head.weight' [2, 4] in the model");
}

TEST(Loading, ByPositionShowsBothShapesWhereNothingFits) {
  Names net;
  const StateDict other{.entries = {{"0.weight", torch::ones({7, 7})}}};
  const Error error =
      error_of([&] { load_state_dict(*net, other, {.by_position = true}); });
  EXPECT_EQ(error.detail, "E_NO_MATCH");
  EXPECT_THAT(
      error.message,
      HasSubstr("entry 1 is '0.weight' [7, 7] in the file, 'conv.weight' "
                "[4, 1, 3, 3] in the model"));
}

TEST(Loading, ByPositionShowsBothShapesWhereSeveralWaysFit) {
  // One of two equal layers is missing.
  nn::Sequential net(nn::Linear(2, 2), nn::Linear(2, 2));
  StateDict other = state_dict(*nn::Sequential(nn::Linear(2, 2)));
  const Error error =
      error_of([&] { load_state_dict(*net, other, {.by_position = true}); });
  EXPECT_EQ(error.detail, "E_AMBIGUOUS");
  EXPECT_THAT(
      error.message,
      HasSubstr("entry 3 is nothing in the file, '1.weight' [2, 2] in the "
                "model"));
}

TEST(Loading, AnUncalledStateDictIsNamed) {
  const test::ScratchDir folder;
  const std::string python = test::run_python("user_files.py", {folder.path()});
  const Checkpoint file = load(folder.path() + "/uncalled.pt");
  nn::Linear net(3, 2);
  const Error error = error_of([&] { load_state_dict(*net, file); });
  EXPECT_EQ(error.message + "\n", python);
  EXPECT_THAT(
      error.hint,
      HasSubstr("this file holds model.state_dict, saved without a call: "
                "'lockstep ckpt extract-model' recovers the weights"));
  const Checkpoint run = load(folder.path() + "/uncalled.pth.tar");
  EXPECT_EQ(
      error_of([&] { load_state_dict(*net, run["state_dict"]); }).hint,
      error.hint);
}

TEST(Loading, LoadWeightsTakesThemFromTheModelAndWarns) {
  const test::ScratchDir folder;
  (void)test::run_python("user_files.py", {folder.path()});
  for (const char* name : {"/uncalled.pt", "/uncalled.pth.tar"}) {
    nn::Linear net(3, 2);
    test::Warnings warnings;
    load_weights(*net, folder.path() + name);
    EXPECT_TRUE(torch::equal(net->weight, torch::ones({2, 3})));
    EXPECT_THAT(
        warnings.text,
        HasSubstr("holds model.state_dict, saved without a call"));
  }
}

TEST(Loading, WhatIsNotReadIsSaid) {
  const test::ScratchDir folder;
  const std::string path = folder.path() + "/long.pth";
  save(state_dict(*nn::Linear(3, 2)), path);
  std::ofstream(path, std::ios::app) << "more";
  test::Warnings warnings;
  const Checkpoint file = load(path);
  EXPECT_TRUE(file.contains("weight"));
  EXPECT_THAT(
      warnings.text,
      HasSubstr("long.pth: W_TRAILING: 4 foreign bytes"));
}

} // namespace
} // namespace lockstep
