// SPDX-License-Identifier: BSD-3-Clause
//
// Settings outside the program: `args.yaml` of a run folder (flat keys, as
// timm writes them) and the `args` dict of a checkpoint.
//   std::string text = to_yaml(config);   // lockstep train --config args.yaml
#pragma once

#include <string>

#include "lockstep/ckpt/value.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// One `key: value` line per saved flag.
std::string to_yaml(const TrainConfig& config);

/// Sets what `text` names and keeps the rest of `config`.
/// Errors: throws kInvalidArgument with `path:line:column` for a key that is
/// no setting of a file, `resume` among them (E_CONFIG_KEY), a bad value
/// (E_FLAG_VALUE) or text that is no flat YAML (E_CONFIG_FILE).
void apply_yaml(
    TrainConfig& config,
    const std::string& text,
    const std::string& path,
    SettingSources* sources = nullptr);

/// A dict of plain values, one per saved flag.
ckpt::Value to_args(const TrainConfig& config);

/// Sets what `args` names and this version knows; keeps the rest of `config`.
/// Errors: throws kInvalidArgument for a value the flag would refuse.
void apply_args(
    TrainConfig& config,
    const ckpt::Value& args,
    SettingSources* sources = nullptr);

} // namespace lockstep::train
