// SPDX-License-Identifier: BSD-3-Clause
//
// Faster kernels, for programs that ask for them:
//   lockstep::kernels::install();                       // the same bits
//   lockstep::kernels::install({.convolution = true});  // faster, other bits
// Replaced are `aten::convolution` and `aten::convolution_backward` on the CPU
// (convolution.h). What has no faster way is LibTorch's own call, one function
// call later. Nothing in Lockstep installs them but `lockstep train`, which
// has `--kernels exact`, `lockstep` and `torch` for the three.
#pragma once

#include <array>
#include <string_view>

namespace lockstep::kernels {

/// The rules by which `InstallOptions::convolution` chooses between its ways
/// and LibTorch's kernels. Another name says that the same program may compute
/// other bits: a run keeps it.
inline constexpr std::string_view kConvolutionRules =
    "products 3, direct 3, winograd 2";

/// The order of the sums of `InstallOptions::batch_norm`, likewise.
inline constexpr std::string_view kBatchNormRules = "norms 1";

struct InstallOptions {
  /// Convolutions over small maps become matrix products, float32 and bfloat16
  /// (convolution_products.h), or with channels last loops of our own
  /// (direct_convolution.h); over larger maps with channels last fewer
  /// multiplications, float32 (winograd.h). Sums are rounded in another order:
  /// results are as exact as LibTorch's and repeat bit for bit, but are not its
  /// bits.
  bool convolution = false;
  /// Batch normalisation in fewer and faster passes, float32 and bfloat16, with
  /// ReLU and addition where a model asks for it (batch_norm.h); exact and
  /// repeatable as above, with any number of threads. Also on CUDA devices,
  /// with channels last (gpu_norm.h).
  bool batch_norm = false;
};

/// Makes LibTorch use Lockstep's kernels in the whole process: in every
/// thread and for every module, Lockstep's or not. Without options results keep
/// every bit: only gradients of weights over small maps are computed in less
/// time (weight_products.h, weight_gradient.h). The last call decides.
/// Threads: any, while no other thread computes a convolution.
void install(const InstallOptions& options = {});

/// LibTorch's own kernels again. Threads: as `install`.
void uninstall();

/// What `--kernels` takes, and what each stands for: `install()`,
/// `install` with all options, `uninstall()`.
inline constexpr std::array<std::string_view, 3> kKernelChoices{
    "exact",
    "lockstep",
    "torch"};

/// Whether the kernels that a word of `kKernelChoices` stands for are fastest
/// with channels last.
constexpr bool want_channels_last(std::string_view choice) {
  return choice == "lockstep";
}

/// Installs or uninstalls what a word of `kKernelChoices` stands for.
/// Threads: as `install`.
void install_choice(std::string_view choice);

} // namespace lockstep::kernels
