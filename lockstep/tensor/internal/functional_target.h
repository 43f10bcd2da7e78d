// SPDX-License-Identifier: BSD-3-Clause
//
// The function that LibTorch's Functional calls, which it does not show.
#pragma once

#include <torch/nn/modules/container/functional.h>

namespace lockstep {

const torch::nn::FunctionalImpl::Function& function_of(
    const torch::nn::FunctionalImpl& module);

} // namespace lockstep
