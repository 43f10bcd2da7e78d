// SPDX-License-Identifier: BSD-3-Clause
//
// The modules of a program: names of parameters and buffers, and a mode each.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include <torch/nn/module.h>

#include "lockstep/program/internal/program_data.h"

namespace lockstep::program {

/// Modules by their paths, each registered when it is first asked for.
/// Ownership: views the data and the paths; `root` outlives it.
class PartTree {
 public:
  PartTree(torch::nn::Module& root, const ProgramData& data)
      : root_(&root, [](torch::nn::Module*) {}), data_(data) {}

  /// The module at "layer1.0", `root` at "".
  /// Errors: throws c10::Error for names that no module can have.
  std::shared_ptr<torch::nn::Module> at(std::string_view path);

 private:
  std::shared_ptr<torch::nn::Module> add(
      torch::nn::Module& parent,
      std::string_view path);

  std::shared_ptr<torch::nn::Module> root_;
  const ProgramData& data_;
  std::map<
      std::pair<const torch::nn::Module*, std::string_view>,
      std::shared_ptr<torch::nn::Module>>
      children_;
};

} // namespace lockstep::program
