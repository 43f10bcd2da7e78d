// SPDX-License-Identifier: BSD-3-Clause
//
// Weights from any checkpoint into a module, in one call: saved on one device
// or many, alone or in a training checkpoint or as a whole model, with or
// without "module.", from Python or C++.
//   load_weights(*net, "whole_model_of_4_gpus.pth");
//   load_weights(*model, "vgg19.pth", {.by_position = true});
//   load_weights(*model, "resnet18.pth", {.may_differ = MayDiffer::kEnds});
#pragma once

#include <bit>
#include <optional>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/tensor/map_location.h"
#include "lockstep/tensor/state_dict.h"

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// How `load_weights` reads a file.
struct LoadWeightsOptions {
  /// Where tensors go before they are copied into the module.
  MapLocation map_location = "cpu";
  /// Missing or unexpected keys are an error.
  bool strict = true;
  /// As `LoadStateDictOptions::by_position`.
  bool by_position = false;
  /// As `LoadStateDictOptions::may_differ`: kEnds takes a network for 1000
  /// classes and three channels into one for other classes and images.
  MayDiffer may_differ = MayDiffer::kNothing;
  /// Byte order of files that do not say it (`ckpt::LoadOptions`).
  std::optional<std::endian> byteorder = {};
};

/// Finds the weights in the file and copies them into `module`. "module." (or
/// another prefix that all keys share) is taken off or put on as the module's
/// own keys want it; the choice that fits most keys wins, and a name that fits
/// as it is stays. Warns if the method `state_dict` was saved uncalled, and
/// takes the weights from its model. No code of the file runs; its GPUs need
/// not be here. Errors: throws what `load` throws; as `find_state_dict`; as
/// `load_state_dict`, and the module is then unchanged.
LoadReport load_weights(
    torch::nn::Module& module,
    const std::string& path,
    const LoadWeightsOptions& options = {},
    FileSystem& fs = real_fs());

} // namespace lockstep
