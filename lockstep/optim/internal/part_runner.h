// SPDX-License-Identifier: BSD-3-Clause
//
// Spreads the parameters of a step over borrowed threads.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/optim/internal/scratch.h"
#include "lockstep/optim/optimizer.h"

namespace lockstep {
struct ParamState;
} // namespace lockstep

namespace lockstep::internal {

/// A parameter with a gradient. `state` is null for an optimizer that keeps
/// none.
struct Update {
  at::Tensor param = {};
  ParamState* state = nullptr;
};

/// What one thread updates, with that thread's temporaries.
struct Part {
  std::vector<Update> updates = {};
  Scratch& scratch;
};

/// Which parameters go where depends on their sizes alone; a parameter is never
/// divided, so results are those of one thread.
class PartRunner {
 public:
  void use(Workers workers) {
    workers_ = std::move(workers);
  }

  /// Calls `step` for each part, at the same time if there are workers and
  /// all parameters are on the CPU; else once, in this thread. No thread of it
  /// records gradients.
  void run(std::vector<Update> updates, const std::function<void(Part&)>& step);

 private:
  std::vector<Part> split(std::vector<Update> updates);

  Workers workers_;
  std::vector<Scratch> scratch_;
};

} // namespace lockstep::internal
