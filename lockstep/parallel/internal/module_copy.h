// SPDX-License-Identifier: BSD-3-Clause
//
// How a replica's module is made from the user's.
#pragma once

#include <memory>
#include <vector>

#include <c10/core/Device.h>

#include "lockstep/tensor/make_module.h"
#include "lockstep/tensor/modules.h"

namespace torch::nn {
class Module;
} // namespace torch::nn

namespace lockstep::parallel {

/// What `factory` makes, if given; else `copy_of(master)`, on `device`; else,
/// where that does not work, what `default_factory` makes, if it has the
/// master's parameters, buffers and layer options. The master stays as it is.
/// Warns where a plain member that the program changed may be lost: the module
/// was constructed again.
/// Errors: throws kInvalidArgument for a factory that returns nothing, another
/// class or the master, kUnsupported with the line to write if there is no way.
ModuleCopy copy_module(
    const torch::nn::Module& master,
    c10::Device device,
    const ModuleFactory& factory,
    const ModuleFactory& default_factory);

/// Errors: throws kInvalidArgument if `copy` shares a module with `others`.
void check_apart(
    const torch::nn::Module& copy,
    const std::vector<std::shared_ptr<torch::nn::Module>>& others);

/// Warns of children that the copy shares with the master.
void warn_of_shared(const ModuleCopy& copy);

/// Warns of what reset() or the constructor draws at random for members.
void warn_of_unlike(const torch::nn::Module& master, const ModuleCopy& copy);

} // namespace lockstep::parallel
