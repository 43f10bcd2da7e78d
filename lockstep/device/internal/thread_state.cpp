// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/internal/thread_state.h"

#include <ATen/ThreadLocalState.h>

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

ThreadState ThreadState::capture() {
  ThreadState state;
  state.state_ = std::make_shared<const at::ThreadLocalState>();
  state.denormals_ = denormal_bits();
  return state;
}

void ThreadState::apply() const {
  at::ThreadLocalState::setThreadLocalState(*state_);
  set_denormal_bits(denormals_);
}

} // namespace lockstep
