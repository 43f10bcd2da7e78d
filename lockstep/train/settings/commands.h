// SPDX-License-Identifier: BSD-3-Clause
//
// What the program lockstep-train can do: it runs these commands, and
// `lockstep` lists them and hands them over.
#pragma once

#include <array>
#include <string_view>

namespace lockstep::train {

/// One command.
struct TrainCommand {
  std::string_view name = {};
  std::string_view help = {};
  /// What follows the name: "[DIR]".
  std::string_view arguments = {};
  std::array<std::string_view, 2> examples = {};
};

inline constexpr std::array kTrainCommands{
    TrainCommand{
        "train",
        "train a model on one or several devices",
        "[DIR]",
        {"lockstep train --model resnet18 --epochs 5 --lr 0.05",
         "lockstep train --devices 'cpu*2' --output runs/two --epochs 1"}},
    TrainCommand{
        "summary",
        "layers, shapes, parameters and costs of a model",
        "MODEL",
        {"lockstep summary resnet18",
         "lockstep summary vgg19 --img-size 32 --num-classes 10 --json"}},
};

} // namespace lockstep::train
