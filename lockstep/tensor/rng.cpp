// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/rng.h"

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>

#include "lockstep/base/error.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

// Size of LibTorch's serialized Mersenne twister.
constexpr std::int64_t kStateBytes = 5056;

} // namespace

at::Tensor get_rng_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_rng_state(const at::Tensor& state) {
  if (!state.defined() || state.scalar_type() != at::kByte ||
      state.numel() != kStateBytes) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "tensor.set_rng_state",
         .message = "expected torch.Size([5056]) of uint8, got " +
                    (state.defined() ? size_text(state.sizes()) + " of " +
                                           c10::toString(state.scalar_type())
                                     : std::string("an undefined tensor"))});
  }
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state.cpu().contiguous());
}

} // namespace lockstep
