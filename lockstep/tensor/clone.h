// SPDX-License-Identifier: BSD-3-Clause
//
// Deep copies of modules without side effects. LibTorch's own `clone()` builds
// the copy by `reset()`, which draws random numbers, turns `requires_grad` on
// and loses the names inside a Sequential.
#pragma once

#include <memory>
#include <optional>

#include <c10/core/Device.h>

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep {

/// A copy with its own storages, the same `requires_grad` flags and the same
/// train or eval mode; on `device` if given.
/// Threads: no other thread may draw from the default generator meanwhile; its
/// state is the same afterwards.
/// Errors: what `module.clone()` throws; c10::Error if that makes another
/// class, as for a class that inherits it.
std::shared_ptr<torch::nn::Module> clone_module(
    const torch::nn::Module& module,
    const std::optional<c10::Device>& device = std::nullopt);

} // namespace lockstep
