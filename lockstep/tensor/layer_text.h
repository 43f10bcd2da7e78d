// SPDX-License-Identifier: BSD-3-Clause
//
// The options of a layer as Python shows them between the parentheses.
#pragma once

#include <string>

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// "3, 64, kernel_size=(7, 7), stride=(2, 2)"; empty for a layer without
/// options and for a module that is not in the table.
/// LibTorch does not keep whether pooling sizes were given as one number:
/// equal ones are shown as one.
std::string layer_text(const torch::nn::Module& module);

} // namespace lockstep
