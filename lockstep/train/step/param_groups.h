// SPDX-License-Identifier: BSD-3-Clause
//
// Parameters that are trained with other rates or other weight decay:
// `--layer-decay`, `--param-groups`, `--no-decay-norms`.
//   - {match: "fc.*", lr_scale: 10}                  # a file of --param-groups
//   - {match: ["*.bn?.*", "*.bias"], weight_decay: 0}
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <torch/nn/module.h>

#include "lockstep/base/fs.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// The flags of this file.
inline constexpr std::array<std::string_view, 3> kGroupFlags{
    "layer-decay",
    "param-groups",
    "no-decay-norms"};

/// What `--param-groups` says, by content: the rules of a file, or in `text`
/// itself if it begins with '[', as one line of YAML.
/// Errors: throws kInvalidArgument (E_CONFIG_FILE) with `path:line:column` for
/// what is no list of rules, kNotFound for a file that is not there.
std::string resolved_param_groups(const std::string& text, FileSystem& fs);

/// One parameter's name, and its dimensions.
struct NamedShape {
  std::string name = {};
  std::int64_t dims = 0;
};

/// The layer of each parameter, from 0 on, in the order of the model's parts: a
/// part is what is numbered ("layer1.0", "features.3", "blocks.11"), else a
/// part of the model itself ("conv1", "fc"). One that has no parameter of two
/// or more dimensions, as a norm, is of the layer before it, and the model's
/// own parameters are of the first.
std::vector<std::size_t> layers_of(std::span<const NamedShape> params);

/// The parameters of `module` in the groups that the settings ask for, with
/// their `lr`, `weight_decay` and names; none if they ask for none. Each
/// parameter is in one group. Its rate is `config.lr`, times the scale of the
/// first rule that matches its name, times layer_decay ^ (last layer - its
/// layer); its decay is that rule's, else 0 for one dimension with
/// `no_decay_norms`, else `config.weight_decay`. The groups come in the order
/// of their first parameters; of `no_decay_norms` alone, as timm has them,
/// those without decay first.
/// Errors: throws kInvalidArgument (E_GROUP_RULE) for a rule that matches
/// nothing, or only what rules before it have.
std::vector<ParamGroup> chosen_groups(
    const TrainConfig& config,
    const torch::nn::Module& module);

/// For the log: "the optimizer has 2 groups", and a line for each.
std::string groups_text(const std::vector<ParamGroup>& groups);

} // namespace lockstep::train
