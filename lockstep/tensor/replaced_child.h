// SPDX-License-Identifier: BSD-3-Clause
//
// LibTorch's silent trap: `net->conv1 = torch::nn::Conv2d(...)` gives forward a
// new layer and leaves the old one registered, so state_dict, optimizers and
// replicas keep that. The sign: a registered child that nothing else refers to.
//   net->conv1 = net->replace_module("conv1", torch::nn::Conv2d(...)); // right
#pragma once

#include <string>
#include <vector>

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// Names ("layer1.0.conv1") of the registered children to which nothing but
/// their registration refers; empty for every LibTorch container and layer. A
/// module none of whose several children is referred to keeps them in its
/// registry alone and is not listed; one with a single child is, though nothing
/// may be wrong.
/// Threads: nobody may change the module meanwhile; a reference that another
/// thread holds for a moment hides a child.
std::vector<std::string> replaced_children(const torch::nn::Module& module);

/// Names ("decoder.weight") of the registered parameters and buffers to which
/// nothing but their registration refers: `b->weight = a->weight` leaves one. A
/// module that finds them by name only is listed though nothing is wrong, but
/// for LibTorch's ParameterList and ParameterDict.
/// Threads: as `replaced_children`.
std::vector<std::string> replaced_tensors(const torch::nn::Module& module);

/// What to write instead, for the first of `replaced_children`; empty without
/// any.
std::string replaced_children_hint(const torch::nn::Module& module);

/// The same as a warning of LibTorch, once for each child.
/// Threads: safe to call from several threads.
void warn_of_replaced_children(const torch::nn::Module& module);

} // namespace lockstep
