// SPDX-License-Identifier: BSD-3-Clause
//
// Digests of tensors, as the oracle scripts print them.
#pragma once

#include <string>

#include <torch/nn/module.h>

namespace lockstep::test {

/// CRC-32 of the elements in row-major order, eight hex digits.
std::string digest(const at::Tensor& tensor);

/// One line "key [shape] digest" per entry of the state dict.
std::string digest(const torch::nn::Module& module);

} // namespace lockstep::test
