// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace lockstep::cli_train {

/// Loads LibTorch's CUDA library if it lies beside the CPU's. A program that
/// was linked with a LibTorch without CUDA does not load it by itself, and then
/// sees no GPU. Call it first: LibTorch looks for CUDA once. If the library
/// does not load, prints why to standard error.
void load_cuda_library();

} // namespace lockstep::cli_train
