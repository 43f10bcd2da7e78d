// SPDX-License-Identifier: BSD-3-Clause
//
// Ways to tell which group of a file each parameter of a model is in, where the
// file does not name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace lockstep::train {

/// The group of each parameter of the model.
using Assignment = std::vector<std::size_t>;

/// A parameter of the model.
struct Param {
  std::string name = {};
  at::Tensor tensor = {};
  bool is_norms = false;
};

/// A group of the file.
struct SavedGroup {
  /// The shape of each parameter; nothing where the file has no state of it.
  std::vector<std::optional<std::vector<std::int64_t>>> shapes = {};
  /// Empty if the file does not say them.
  std::vector<std::string> names = {};
  double weight_decay = 0;
};

/// A usual grouping, and what it is called.
struct UsualGrouping {
  Assignment assignment = {};
  std::string name = {};
};

/// The ways that fit sizes and shapes and keep each group in the model's order,
/// at most two: more are not told apart. Two also where a shape is missing.
std::vector<Assignment> ways_by_shapes(
    const std::vector<Param>& params,
    const std::vector<SavedGroup>& groups);

/// How scripts group parameters, as far as it fits sizes and shapes: by classes
/// as timm, torchvision and ultralytics do; parts of the model or layers, from
/// the first or from the last one on. If some of the classes give no weight
/// decay to just those parameters that scripts spare, of classes only these.
std::vector<UsualGrouping> usual_groupings(
    const std::vector<Param>& params,
    const std::vector<SavedGroup>& groups);

} // namespace lockstep::train
