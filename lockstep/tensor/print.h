// SPDX-License-Identifier: BSD-3-Clause
//
// Modules as Python prints them (`print(model)`), not as LibTorch does.
//   std::cout << to_string(*net) << '\n';
// Our models and DataParallel print so by themselves: `std::cout << *net`.
//
// Small pieces of text as Python prints them, for messages and reports.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <c10/util/ArrayRef.h>

namespace lockstep {

/// `repr(str)`: 'a', or "it's" where the text holds a single quote.
std::string python_repr(std::string_view text);

/// `repr(list of str)`: ['a', 'b'].
std::string python_repr(std::span<const std::string> texts);

/// Sizes as PyTorch prints them: torch.Size([5, 3]).
std::string size_text(c10::IntArrayRef sizes);

/// A tuple of integers: (3, 3), or (3,) for one.
std::string tuple_text(c10::IntArrayRef values);

} // namespace lockstep

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
