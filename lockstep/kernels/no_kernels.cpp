// SPDX-License-Identifier: BSD-3-Clause
//
// install.h in a build without kernels (LOCKSTEP_WITH_KERNELS=OFF).
#include "lockstep/base/error.h"
#include "lockstep/kernels/install.h"
#include "lockstep/kernels/internal/convolution_times.h"
#include "lockstep/tensor/internal/kernel_choice.h"

namespace lockstep::kernels {
namespace {

[[noreturn]] void unavailable() {
  raise(
      {.code = ErrorCode::kUnavailable,
       .op = "kernels.install",
       .message = "this build of Lockstep has no kernels but LibTorch's",
       .hint = "build it with LOCKSTEP_WITH_KERNELS=ON, or choose exact"});
}

void choose(std::string_view choice) {
  if (choice == "lockstep") {
    unavailable();
  }
}

constexpr OwnKernels kOwnKernels{.choose = &choose};

} // namespace

void install(const InstallOptions& options) {
  set_own_kernels(kOwnKernels);
  if (options.convolution || options.batch_norm) {
    unavailable();
  }
}

void uninstall() {}

std::array<AlgorithmTimes, 3> time_convolution(
    const at::Tensor& /*input*/,
    const at::Tensor& /*weight*/,
    const KernelSteps& /*steps*/,
    std::int64_t /*repeats*/) {
  unavailable();
}

} // namespace lockstep::kernels
