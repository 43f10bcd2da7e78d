// SPDX-License-Identifier: BSD-3-Clause
//
// How long each way takes for a convolution on this machine: what the limits in
// the ways' `is_better` are made from.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/kernels/convolution_terms.h"

namespace lockstep::kernels {

struct WayTime {
  /// "exact", which is LibTorch's kernel or what gives its bits sooner, as
  /// `install()` has it; or the name of one of our ways: "winograd".
  std::string_view way = {};
  /// The best of all repeats. Units: seconds.
  double seconds = 0;
  /// Whether `InstallOptions::convolution` computes it so.
  bool is_chosen = false;
};

/// "exact" comes first, then every way of ours that can compute it.
using WayTimes = std::vector<WayTime>;

/// Of a two-dimensional convolution with one group and no bias, by Pass. The
/// ways take turns, `repeats` times each. One thread is timed by its processor
/// time, which other jobs on the machine disturb less. Shape: `input` [batch,
/// in, h, w], `weight` [out, in, kh, kw]. Errors: throws what LibTorch throws
/// for a wrong convolution.
std::array<WayTimes, 3> time_convolution(
    const at::Tensor& input,
    const at::Tensor& weight,
    const KernelSteps& steps,
    std::int64_t repeats);

} // namespace lockstep::kernels
