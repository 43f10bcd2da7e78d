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
/// options and for a module that is none of LibTorch's.
/// LibTorch keeps less than Python was given. Equal pooling sizes are shown as
/// one number, a stride that was left out as the kernel's size, and an integer
/// given for a real number as a real number: `norm_type=2.0`.
std::string layer_text(const torch::nn::Module& module);

/// `layer_text` of the layers that have no parameters.
std::string stateless_text(const torch::nn::Module& module);

/// One line for each tensor of a ParameterList or ParameterDict, empty for any
/// other module. Python writes the types of the two in different ways.
std::string parameters_text(const torch::nn::Module& module);

} // namespace lockstep
