// SPDX-License-Identifier: BSD-3-Clause
//
// Autocast with the lists that LibTorch gives to accelerators (CUDA's).
#include <memory>

#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "lockstep/sim/kernels.h"

namespace lockstep::sim {
namespace {

torch::Library& library_for(const char* space) {
  return *std::make_unique<torch::Library>(
              torch::Library::IMPL,
              space,
              c10::DispatchKey::AutocastPrivateUse1,
              __FILE__,
              __LINE__)
              .release();
}

// LibTorch's macros name the namespaces without their roots.
using namespace at; // NOLINT(google-build-using-namespace)

void register_lists(torch::Library& m) {
#define LOCKSTEP_LOWER(...) \
  KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(LOCKSTEP_LOWER)
#undef LOCKSTEP_LOWER
#define LOCKSTEP_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(LOCKSTEP_FP32)
#undef LOCKSTEP_FP32
#define LOCKSTEP_SET(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(LOCKSTEP_SET)
#undef LOCKSTEP_SET
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(
      KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
#define LOCKSTEP_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(LOCKSTEP_PROMOTE)
#undef LOCKSTEP_PROMOTE
}

} // namespace

void register_autocast() {
  library_for("_").fallback(torch::CppFunction::makeFallthrough());
  register_lists(library_for("aten"));
}

} // namespace lockstep::sim
