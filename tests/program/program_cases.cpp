// SPDX-License-Identifier: BSD-3-Clause
#include "tests/program/program_cases.h"

#include <map>

#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/tensor/state_dict.h"
#include "tests/support/python.h"

namespace lockstep::test {
namespace {

std::vector<ProgramValue> to_arguments(const std::vector<ckpt::Value>& values) {
  std::vector<ProgramValue> out;
  for (const ckpt::Value& value : values) {
    out.push_back(to_argument(value));
  }
  return out;
}

std::vector<ProgramValue::Item> to_items(const ckpt::Dict& dict) {
  std::vector<ProgramValue::Item> out;
  for (const auto& [key, value] : dict.items) {
    out.emplace_back(std::string(key.text()), to_argument(value));
  }
  return out;
}

} // namespace

ProgramValue to_argument(const ckpt::Value& value) {
  if (value.as_tensor() != nullptr) {
    return to_tensor(*value.as_tensor());
  }
  if (value.as_dict() != nullptr) {
    return ProgramValue::dict(to_items(*value.as_dict()));
  }
  if (value.as_tuple() != nullptr) {
    return ProgramValue::tuple(to_arguments(value.as_tuple()->items));
  }
  if (value.as_list() != nullptr) {
    return ProgramValue::list(to_arguments(value.as_list()->items));
  }
  if (value.as_int() != nullptr) {
    return *value.as_int();
  }
  return {};
}

std::vector<std::string> program_nets() {
  return {"mlp",      "cnn",      "resnet18", "unet",    "vit",    "encoder",
          "lstm",     "gru",      "text",     "results", "tied",   "frozen",
          "mobile",   "convnext", "branches", "cells",   "attend", "seq2seq",
          "dropouts", "weights",  "waves",    "sizes",   "pieces", "bfloat16",
          "moving",   "tensors"};
}

const ScratchDir& program_folder(const std::string& optimizer) {
  static const ScratchDir folder;
  static std::map<std::string, bool> is_made;
  if (!is_made[optimizer]) {
    std::vector<std::string> args{folder.path(), optimizer};
    for (const std::string& net : program_nets()) {
      args.push_back(net);
    }
    run_python("program_train.py", args);
    is_made[optimizer] = true;
  }
  return folder;
}

Program load_net(const std::string& net) {
  return load_program(program_folder("sgd") / (net + ".pt2"));
}

ProgramCase load_case(const std::string& net, const std::string& optimizer) {
  const auto file =
      ckpt::load(program_folder(optimizer) / (net + "." + optimizer + ".pt"));
  EXPECT_TRUE(file) << to_string(file.error());
  const ckpt::Value& root = file->root;
  ProgramCase result{
      .losses = to_tensor(*root.find("losses")->as_tensor()),
      .state = to_state_dict(*root.find("state")),
      .eval = to_tensor(*root.find("eval")->as_tensor())};
  for (const ckpt::Value& batch : root.find("batches")->as_list()->items) {
    const auto& parts = batch.as_tuple()->items;
    result.batches.push_back(
        {.arguments =
             {.args = to_arguments(parts.at(0).as_tuple()->items),
              .kwargs = to_items(*parts.at(1).as_dict())},
         .target = to_tensor(*parts.at(2).as_tensor())});
  }
  return result;
}

at::Tensor output_of(const ProgramValue& result) {
  return result.is_tensor() ? result.tensor() : result["out"].tensor();
}

std::vector<std::string> differences(
    const torch::nn::Module& module,
    const StateDict& expected) {
  std::vector<std::string> names;
  const StateDict got = state_dict(module);
  for (const auto& [name, tensor] : expected.entries) {
    const at::Tensor own = got.get(name);
    if (!own.defined() || !at::equal(own, tensor)) {
      names.push_back(name);
    }
  }
  return names;
}

} // namespace lockstep::test
