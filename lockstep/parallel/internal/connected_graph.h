// SPDX-License-Identifier: BSD-3-Clause
//
// Replicas that hang in the caller's graph.
//
// Note [Connected graph]
// Usually a replica's parameters are leaves: its backward runs apart from the
// caller's graph, in the replica's thread, and only sums come out
// (join_node.h). That is fast, and has no gradient of a gradient. A connected
// replica's parameters are instead results of a node that sends gradients on to
// the master's parameters, scatter and gather are ordinary operations, and
// autograd sees one graph: `create_graph` works, the engine runs the passes (on
// the CPU one after the other) and sums gradients in its own order.
#pragma once

#include <span>

#include <c10/core/Device.h>

#include "lockstep/parallel/internal/parameter_rows.h"

namespace lockstep::parallel {

/// Makes replica `replica`'s parameters results of the masters, which are on
/// `home`, wherever those take gradients; their values stay. From then on
/// gradients, first and higher ones, reach the masters.
void connect(
    std::span<const ParameterRow> parameters,
    std::size_t replica,
    c10::Device home);

} // namespace lockstep::parallel
