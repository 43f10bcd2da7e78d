// SPDX-License-Identifier: BSD-3-Clause
//
// What a file's name says about its format.
#pragma once

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::cli {

/// The format that `path` is written in without --to: "pt" if its ending says
/// nothing.
std::string format_by_name(const std::string& path);

/// Refuses a name that means another format, of ours or of others: a file
/// "model.onnx" would mislead everybody who sees it.
/// Errors: kInvalidArgument (E_ENDING).
Status check_ending(const std::string& path, const std::string& format);

/// Refuses what `ckpt::save` does not know. Errors: kInvalidArgument.
Status check_format(const std::string& name);

/// "pt, safetensors, npz, ...".
std::string format_names();

} // namespace lockstep::cli
