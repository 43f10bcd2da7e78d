// SPDX-License-Identifier: BSD-3-Clause
//
// Which parameter of a replica stands for which of the module.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "lockstep/parallel/internal/module_parts.h"

namespace lockstep::parallel {

/// One distinct parameter of the master, or buffer that takes gradients, and
/// its stand-ins.
struct ParameterRow {
  /// First name it is registered under: "layer1.0.conv1.weight".
  std::string name = {};
  at::Tensor master = {};
  /// The norm by which forward shortens its rows, if it is the weight of an
  /// embedding with `max_norm`: Note [Renormed rows] in renormed_rows.h.
  std::optional<double> norm = {};
  /// Of connected replicas: where they send the master's gradient.
  torch::autograd::Edge sent_to = {};
  /// Per replica, the leaves that take its gradient: one, or several where the
  /// master registers one tensor under several names and the replica does not.
  /// Row 0 holds the master itself.
  std::vector<std::vector<at::Tensor>> leaves = {};
};

/// One row per distinct parameter of `parts.front()`, the master's; the others
/// are those of its replicas.
/// Errors: throws kMismatch if a replica is not built like the master.
std::vector<ParameterRow> make_rows(const std::vector<ModuleParts>& parts);

} // namespace lockstep::parallel
