// SPDX-License-Identifier: BSD-3-Clause
//
// The autograd node behind a wrapped module's outputs: an output that no loss
// uses gives the Reducer no gradient instead of zeros, and the first backward
// pass of a static graph is told from here (torch.nn.parallel's _DDPSink).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace lockstep::dist::internal {

/// Called once at the end of the backward pass that comes first.
struct FirstBackward {
  std::function<void()> at_end = {};
  bool has_come = false;
};

/// The outputs, with the node behind those that have a graph. `first` may be
/// null.
std::vector<at::Tensor> sink_outputs(
    const std::vector<at::Tensor>& outputs,
    const std::shared_ptr<FirstBackward>& first);

} // namespace lockstep::dist::internal
