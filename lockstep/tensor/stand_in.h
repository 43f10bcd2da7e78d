// SPDX-License-Identifier: BSD-3-Clause
//
// A copy of a module whose members hold the module's tensors computes with its
// own nevertheless: operations get those in their place.
#pragma once

#include <unordered_map>

#include <ATen/core/Tensor.h>

namespace lockstep {

/// A module's tensor, and the copy's.
struct StandIn {
  /// Held, so that its address is no other tensor's.
  at::Tensor original = {};
  at::Tensor own = {};
};
using StandIns = std::unordered_map<const c10::TensorImpl*, StandIn>;

/// Lets LibTorch look for stand-ins, for the rest of the process: before the
/// first guard that has some. Further calls do nothing.
/// Threads: while no other thread calls operations.
void install_stand_ins();

/// From now on `tell` gets each tensor that an operation of this thread returns
/// to who called it; nobody does if it is null. After `install_stand_ins`.
void watch_results(void (*tell)(const at::Tensor& tensor));

/// While it lives, LibTorch's operations in this thread take the stand-ins of
/// their arguments. What asks a tensor itself (`w.device()`, `w.data_ptr()`)
/// sees the original. Costs nothing if `stand_ins` is empty, else a look at the
/// arguments of each operation.
/// Ownership: `stand_ins` outlives it.
/// Threads: operations of threads that forward starts see the originals.
class StandInGuard {
 public:
  explicit StandInGuard(const StandIns& stand_ins);
  ~StandInGuard();
  StandInGuard(const StandInGuard&) = delete;
  StandInGuard& operator=(const StandInGuard&) = delete;

 private:
  const StandIns* outer_ = nullptr;
};

} // namespace lockstep
