// SPDX-License-Identifier: BSD-3-Clause
//
// Parameter groups of other people's scripts. A file numbers the parameters
// through all groups and does not name them: timm has those without weight
// decay first, torchvision the norms apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "lockstep/ckpt/value.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep::train {

/// The parameters of a model in the groups of a file.
struct GroupFit {
  /// In the file's order; without options but `param_names`.
  std::vector<ParamGroup> groups = {};
  /// For the log: how the groups were found.
  std::string note = {};
};

/// Finds the parameter of `model` behind each number in the optimizer state
/// `saved`: by the names in the file, else by the shapes of its tensors if they
/// leave one way, else by the usual groupings (`kGroupings`) if one fits.
/// Nothing for a state without groups, and for one group in the model's order:
/// names alone give one group another order.
/// Errors: throws kMismatch (E_PARAM_GROUPS) if no way fits, and with their
/// names if several do.
std::optional<GroupFit> fit_groups(
    const ckpt::Value& saved,
    const torch::nn::Module& model);

} // namespace lockstep::train
