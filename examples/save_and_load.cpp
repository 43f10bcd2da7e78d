// SPDX-License-Identifier: BSD-3-Clause
//
// Weights of a wrapped model have "module." in front of their names. What goes
// wrong between wrapped and unwrapped models, and the ways to put it right.
// Writes mymodule.pth into the current folder; Python reads it, too.
#include <iostream>
#include <memory>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/models/classification.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"

namespace ls = lockstep;

const std::string kFile = "mymodule.pth";

void print_keys(const char* name, const ls::StateDict& weights) {
  std::cout << name << ":";
  for (const auto& [key, tensor] : weights.entries) {
    std::cout << " " << key;
  }
  std::cout << "\n";
}

// Loads the file and says how it went.
void try_load(
    const char* how,
    torch::nn::Module& module,
    const ls::LoadStateDictOptions& options = {}) {
  std::cout << how << "\n  ";
  try {
    const auto weights = ls::load(kFile)["state_dict"];
    std::cout << to_string(ls::load_state_dict(module, weights, options));
  } catch (const ls::Exception& e) {
    std::cout << e.what();
  }
  std::cout << "\n";
}

void save(const torch::nn::Module& module) {
  ls::save({{"state_dict", module}}, kFile);
}

int main() {
  ls::start_sim({.devices = 2});
  const auto net = std::make_shared<ls::MyModule>();
  ls::DataParallel model(net);
  print_keys("unwrapped", ls::state_dict(*net));
  print_keys("wrapped", ls::state_dict(*model));

  save(*model);
  try_load("wrapped file into wrapped model", *model);
  try_load("wrapped file into unwrapped model", *net);
  try_load("... with the prefix stripped", *net, {.strip_prefix = "module."});

  save(*model->module()); // better: the same file for any number of devices
  try_load("unwrapped file into model->module()", *model->module());
  try_load("unwrapped file into wrapped model", *model);
  try_load("... with the prefix added", *model, {.add_prefix = "module."});

  // On dictionaries. Only one leading "module." goes: k[7:] and
  // replace('module.', '') damage names like these.
  const auto one = torch::ones({1});
  const ls::StateDict tricky{
      .entries = {{"module.a.module.b", one}, {"submodule.c", one}}};
  print_keys("stripped", ls::strip_prefix(tricky, "module."));
  print_keys("added", ls::add_prefix(ls::state_dict(*net), "module."));
}
