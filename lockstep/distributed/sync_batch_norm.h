// SPDX-License-Identifier: BSD-3-Clause
//
// BatchNorm over the batches of all ranks. LibTorch's layers stay what and
// where they are: members like `torch::nn::BatchNorm2d bn{nullptr}`, names and
// files do not change.
//   convert_sync_batchnorm(*net);          // all ranks
//   DistributedDataParallel model(net);
#pragma once

#include <cstdint>

#include <torch/nn/module.h>

#include "lockstep/distributed/process_group.h"

namespace lockstep {

/// From now on the BatchNorm layers in `module`, when they train, take the mean
/// and variance of the batches of all ranks of `group` (the default group if
/// empty), of whatever sizes; forward, gradients and running statistics are
/// those of one layer that sees all of it. Every rank then makes the same
/// forward and backward passes, second gradients (`create_graph`) included. On
/// any device, and for inputs and weights of half types, too. A batch may be
/// empty; if those of all ranks are, the running statistics stay as they are.
/// Those of an exported program (`load_program`) are layers, too.
/// Returns the number of layers.
/// Ownership: `group` must live as long as the layers train. A clone of a layer
/// is a plain one.
/// Threads: call it before other threads use BatchNorm.
/// Errors: throws kUnsupported (E_SYNC_BATCH_NORM) for a layer without weights
/// and without running statistics, and for one of a program whose graph was
/// decomposed; LibTorch itself refuses, on the rank
/// concerned, a batch with one value per channel; E_OPERATORS if LibTorch's
/// aten::batch_norm is another than ours was written for.
std::int64_t convert_sync_batchnorm(
    torch::nn::Module& module,
    const dist::ProcessGroup& group = {});

/// LibTorch's own aten::batch_norm again: every converted layer of the process
/// is a plain one. Threads: as `convert_sync_batchnorm`.
void uninstall_sync_batchnorm();

} // namespace lockstep
