// SPDX-License-Identifier: BSD-3-Clause
//
// The modules of a program: names of parameters and buffers, and a mode each.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "lockstep/program/internal/program_data.h"

namespace lockstep::program {

/// Modules by their paths, each registered when it is first asked for.
/// Ownership: shares the data, views the paths; `root` outlives it.
class PartTree {
 public:
  using Names = std::vector<std::string_view>;

  PartTree(torch::nn::Module& root, std::shared_ptr<const ProgramData> data)
      : root_(&root, [](torch::nn::Module*) {}), data_(std::move(data)) {}

  /// The modules of these parameters and buffers, in an order in which a walk
  /// meets each list as Python's did: ranks of both send buffers in one order.
  /// Errors: as `at`.
  void add_all(const Names& parameters, const Names& buffers);

  /// The module at "layer1.0", `root` at "".
  /// Errors: throws c10::Error for names that no module can have.
  std::shared_ptr<torch::nn::Module> at(std::string_view path);

 private:
  std::shared_ptr<torch::nn::Module> add(
      torch::nn::Module& parent,
      std::string_view path);

  std::shared_ptr<torch::nn::Module> root_;
  std::shared_ptr<const ProgramData> data_;
  std::map<
      std::pair<const torch::nn::Module*, std::string_view>,
      std::shared_ptr<torch::nn::Module>>
      children_;
};

} // namespace lockstep::program
