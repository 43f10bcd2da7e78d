// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/internal/thread_state.h"

#include <array>

#include <ATen/SavedTensorHooks.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/autocast_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace lockstep {
namespace {

#if defined(__SSE2__)
// FTZ and DAZ, as set by torch's set_flush_denormal.
constexpr unsigned kDenormalBits = 0x8040;

unsigned denormal_bits() {
  return _mm_getcsr() & kDenormalBits;
}

void set_denormal_bits(unsigned bits) {
  _mm_setcsr((_mm_getcsr() & ~kDenormalBits) | bits);
}
#else
unsigned denormal_bits() {
  return 0;
}

void set_denormal_bits(unsigned /*bits*/) {}
#endif

} // namespace

// What a program changes in the middle of a task; ThreadLocalState, which keeps
// more, cannot be compared.
struct ThreadState::Signs {
  c10::DispatchKeySet included = {};
  c10::DispatchKeySet excluded = {};
  std::array<bool, 6> modes = {};
  std::array<at::ScalarType, 3> dtypes = {};
  const void* debug_info = nullptr;
  std::size_t hooks = 0;
  unsigned denormals = 0;

  static Signs here() {
    const auto keys = c10::impl::tls_local_dispatch_key_set();
    const auto& autograd = c10::AutogradState::get_tls_state();
    return {
        .included = keys.included_,
        .excluded = keys.excluded_,
        .modes =
            {autograd.get_grad_mode(),
             autograd.get_inference_mode(),
             autograd.get_fw_grad_mode(),
             autograd.get_multithreading_enabled(),
             autograd.get_view_replay_enabled(),
             at::autocast::is_autocast_cache_enabled()},
        .dtypes =
            {at::autocast::get_autocast_dtype(at::kCPU),
             at::autocast::get_autocast_dtype(at::kCUDA),
             at::autocast::get_autocast_dtype(at::kPrivateUse1)},
        .debug_info = c10::ThreadLocalDebugInfo::current().get(),
        .hooks = at::SavedTensorDefaultHooks::get_tls_state().stack.size(),
        .denormals = denormal_bits()};
  }
  bool operator==(const Signs&) const = default;
};

ThreadState ThreadState::capture() {
  ThreadState state;
  state.state_ = std::make_shared<const at::ThreadLocalState>();
  state.signs_ = std::make_shared<const Signs>(Signs::here());
  return state;
}

void ThreadState::apply() const {
  at::ThreadLocalState::setThreadLocalState(*state_);
  set_denormal_bits(signs_->denormals);
}

void ThreadState::restore() const {
  if (Signs::here() != *signs_) {
    apply();
  }
}

} // namespace lockstep
