// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels of ours in place of LibTorch's, for the rest of the process.
#pragma once

#include <torch/library.h>

namespace lockstep {

/// Calls `add` with a library for operations of `aten` on the CPU, or for
/// another key. It is never removed: other threads may be inside one of its
/// kernels at exit.
/// Threads: call once for the same kernels, while no other thread calls the
/// operations that they replace.
inline void replace_kernels(
    void (*add)(torch::Library&),
    c10::DispatchKey key = c10::DispatchKey::CPU) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): lives for ever
  auto* const library =
      new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  add(*library);
}

} // namespace lockstep
