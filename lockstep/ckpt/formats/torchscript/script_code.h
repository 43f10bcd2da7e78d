// SPDX-License-Identifier: BSD-3-Clause
//
// The code of an archive: for each object a class that lists its attributes,
// and nothing to run.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ckpt/formats/torchscript/script_classes.h"

namespace lockstep::ckpt::internal {

/// Record of the class: "code/__torch__/___torch_mangle_0.py".
std::string script_code_record(std::size_t index);

/// Text of that record.
std::string script_code(
    const std::vector<ScriptClass>& classes,
    std::size_t index);

} // namespace lockstep::ckpt::internal
