// SPDX-License-Identifier: BSD-3-Clause
//
// Modules as Python prints them (`print(model)`), not as LibTorch does.
//   std::cout << to_string(*net) << '\n';
// Our models and DataParallel print so by themselves: `std::cout << *net`.
#pragma once

#include <string>

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// PyTorch 2.13's `repr(module)`: class name, options, children indented by
/// two. Options show for all layers of LibTorch, but for what LibTorch does not
/// keep of them (layer_text.h); any other module shows its class name and
/// children.
std::string to_string(const torch::nn::Module& module);

} // namespace lockstep
