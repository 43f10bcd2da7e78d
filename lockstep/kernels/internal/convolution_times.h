// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernels of convolutions are called, and how long each takes here:
// `lockstep bench --tune`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

namespace lockstep::kernels {

/// What is computed of a convolution.
enum class Pass { kForward, kInputGradient, kWeightGradient };

/// Where a convolution applies its kernel. Units: pixels, [height, width], or
/// one number for both.
struct KernelSteps {
  at::IntArrayRef stride = {};
  at::IntArrayRef padding = {};
  at::IntArrayRef dilation = {};
};

/// The ways to compute a convolution. The first is LibTorch's kernel or what
/// gives its bits sooner, as `install()` has it; of the others the first that
/// is better computes with `InstallOptions::convolution`.
inline constexpr std::array<std::string_view, 4> kAlgorithms{
    "exact",
    "winograd",
    "direct",
    "product"};

struct AlgorithmTime {
  /// Of `kAlgorithms`.
  std::string_view algorithm = {};
  /// The best of all repeats. Units: seconds.
  double seconds = 0;
  /// Whether `InstallOptions::convolution` computes it so.
  bool is_chosen = false;
};

/// "exact" comes first, then every way of ours that can compute it.
using AlgorithmTimes = std::vector<AlgorithmTime>;

/// How long each way takes on this machine: what the limits by which they are
/// chosen are made from. Of a two-dimensional convolution with one group and no
/// bias, by Pass. The ways take turns, `repeats` times each. One thread is
/// timed by its processor time, which other jobs on the machine disturb less.
/// Shape: `input` [batch, in, h, w], `weight` [out, in, kh, kw].
/// Errors: throws what LibTorch throws for a wrong convolution.
std::array<AlgorithmTimes, 3> time_convolution(
    const at::Tensor& input,
    const at::Tensor& weight,
    const KernelSteps& steps,
    std::int64_t repeats);

} // namespace lockstep::kernels
