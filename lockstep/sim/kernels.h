// SPDX-License-Identifier: BSD-3-Clause
//
// Registers the backend's kernels with LibTorch's dispatcher.
#pragma once

namespace torch {
class Library;
} // namespace torch

namespace lockstep::sim {

/// Memory, copies, dropout, and the alias kernel for all the rest. Once per
/// process; never undone.
void register_kernels();
/// The cells of LSTM and GRU, to both the backend's kernels and its autograd.
void register_recurrent(torch::Library& library);
/// Lists of operations that autocast runs in lower precision or in float32.
void register_autocast();

} // namespace lockstep::sim
