// SPDX-License-Identifier: BSD-3-Clause
//
// Embeddings with `max_norm`, the only modules of LibTorch whose forward writes
// into a parameter.
//
// Note [Renormed rows]
// Their forward shortens the rows that it looks up, where these are longer than
// `max_norm`. In memory that replicas share one would read what another writes.
// So each replica has a copy of such a weight, on the CPU, too, made before
// each pass, and the master gets the shortened rows after it, as if one device
// had looked up all of them. A row is only ever made shorter, and all replicas
// make it what one device would: of two the shorter one is the new one. Python
// keeps the rows of replica 0 alone.
#pragma once

#include <span>

#include "lockstep/parallel/internal/parameter_rows.h"

namespace lockstep::parallel {

/// Sets `norm` of the rows that are weights of embeddings with `max_norm`.
void mark_renormed(
    const torch::nn::Module& master,
    std::span<ParameterRow> rows);

/// Brings shortened rows of the first `used` replicas to the masters. Counts no
/// change: graphs of the pass saved what they use.
void take_renormed(std::span<const ParameterRow> rows, std::size_t used);

} // namespace lockstep::parallel
