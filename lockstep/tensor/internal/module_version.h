// SPDX-License-Identifier: BSD-3-Clause
//
// What PyTorch stores as a module's `version` beside its weights.
#pragma once

#include <cstdint>

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// Python's `_version` of the module's class: 2 for the batch-norm family,
/// else 1.
std::int64_t state_version(const torch::nn::Module& module);

} // namespace lockstep
