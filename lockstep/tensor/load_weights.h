// SPDX-License-Identifier: BSD-3-Clause
//
// Weights from any checkpoint into a module, in one call: saved on one device
// or many, alone or in a training checkpoint or as a whole model, with or
// without "module.", from Python or C++.
//   load_weights(*net, "whole_model_of_4_gpus.pth");
//   load_weights(*model, "vgg19.pth", {.by_position = true});
//   load_weights(*model, "resnet18.pth", {.may_differ = MayDiffer::kEnds});
//   load_weights(*net, "esrgan.pth", {.key = "params_ema"});
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::ckpt {
class Entry;
} // namespace lockstep::ckpt

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
  /// As `LoadStateDictOptions::first`: `{.by_position = true, .first = 20}`.
  std::int64_t first = 0;
  /// As `LoadStateDictOptions::may_differ`: kEnds takes a network for 1000
  /// classes and three channels into one for other classes and images.
  MayDiffer may_differ = MayDiffer::kNothing;
  /// Byte order of files that do not say it (`ckpt::LoadOptions`).
  std::optional<std::endian> byteorder = {};
  /// Where the weights are: the dotted name of an entry of the file
  /// ("params_ema", "state.model"), or what the names of some of its weights
  /// begin with ("student"). Empty: `find_state_dict` looks for them.
  std::string key = {};
};

/// Finds the weights in the file and copies them into `module`. Names need not
/// agree in what wraps the network: "module.", "_orig_mod." and the like,
/// anywhere in a name, in layers, on some keys only; one more prefix of any
/// name that a side has around all of it. The choice that fits most keys wins,
/// and a name that fits as it is stays. A tensor that the module has under
/// several names may be in the file once, as `safetensors.torch.save_model`
/// writes it. `LoadReport::notes` says what was chosen.
/// Warns if the method `state_dict` was saved uncalled, and takes the weights
/// from its model. No code of the file runs; its GPUs need not be here.
/// Errors: throws what `load` throws; as `find_state_dict`; kMismatch
/// (E_AMBIGUOUS) if several parts of the file fit, or the file several parts of
/// the module; as `load_state_dict`. The module is then unchanged.
LoadReport load_weights(
    torch::nn::Module& module,
    const std::string& path,
    const LoadWeightsOptions& options = {},
    FileSystem& fs = real_fs());

/// The same from a file that was opened, or an entry of it. Tensors go where
/// `load` was told to put them: only `key`, `strict`, `by_position`, `first`
/// and `may_differ` of `options` count.
LoadReport load_weights(
    torch::nn::Module& module,
    const ckpt::Entry& file,
    const LoadWeightsOptions& options = {});

/// The same for weights that were found already: a dict of tensors. Only
/// `strict`, `by_position`, `first` and `may_differ` of `options` count.
LoadReport load_fitting(
    torch::nn::Module& module,
    const ckpt::Value& weights,
    const LoadWeightsOptions& options = {});

} // namespace lockstep
