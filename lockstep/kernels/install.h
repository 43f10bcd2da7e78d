// SPDX-License-Identifier: BSD-3-Clause
//
// Faster kernels, for programs that ask for them:
//   lockstep::kernels::install();                       // the same bits
//   lockstep::kernels::install({.convolution = true});  // faster, other bits
// Replaced are `aten::convolution` and `aten::convolution_backward` on the CPU
// and the operator in which a batch norm ends. What has no faster way is
// LibTorch's own call, one function call later. Nothing in Lockstep installs
// them but the program `lockstep train`, which has `--kernels exact`,
// `lockstep` and `torch` for the three (tensor/internal/kernel_choice.h). Built
// without kernels (LOCKSTEP_WITH_KERNELS=OFF), `install()` does nothing and
// what is asked for beyond throws kUnavailable.
#pragma once

#pragma GCC visibility push(default)
namespace lockstep::kernels {

struct InstallOptions {
  /// Convolutions over small maps become matrix products, float32 and bfloat16,
  /// or with channels last loops of our own; over larger maps with channels
  /// last fewer multiplications, float32 (Winograd's). Sums are rounded in
  /// another order: results are as exact as LibTorch's and repeat bit for bit,
  /// but are not its bits.
  bool convolution = false;
  /// Batch normalisation in fewer and faster passes, float32 and bfloat16, with
  /// ReLU and addition where a model asks for it (tensor/norm_relu.h); exact
  /// and repeatable as above, with any number of threads. Also on CUDA devices,
  /// with channels last.
  bool batch_norm = false;
};

/// Makes LibTorch use Lockstep's kernels in the whole process: in every
/// thread and for every module, Lockstep's or not. Without options results keep
/// every bit: only gradients of weights over small maps are computed in less
/// time. The last call decides.
/// Threads: any, while no other thread computes a convolution or a batch norm.
/// Errors: if LibTorch's operators are others than the kernels were written for
/// (docs/process_state.md), throws kUnsupported (E_OPERATORS) for an option;
/// without options LibTorch's kernels stay, with a warning.
void install(const InstallOptions& options = {});

/// LibTorch's own kernels again. Threads: as `install`.
void uninstall();

} // namespace lockstep::kernels
#pragma GCC visibility pop
