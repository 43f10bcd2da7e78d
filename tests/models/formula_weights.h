// SPDX-License-Identifier: BSD-3-Clause
//
// Weights and images that follow from names, so that Python makes the same
// without a file between: tests/oracle/segmentation_golden.py.
#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace lockstep::test {

/// `count` float32 numbers in [0, 1) that depend on `name` alone.
at::Tensor mixed(std::string_view name, std::int64_t count);

/// Fills parameters and statistics so that no map grows or fades on its way.
void fill(torch::nn::Module& net);

} // namespace lockstep::test
