// SPDX-License-Identifier: BSD-3-Clause
//
// The parts that every run has. Ownership: each borrows its argument, which
// must outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include "lockstep/distributed/process_group.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/train/state_part.h"

#pragma GCC visibility push(default)
namespace torch::optim {
class Optimizer;
} // namespace torch::optim

namespace lockstep::train {

/// `state_dict`: weights and buffers without "module." in front of the names;
/// a file may have it, and what else `load_weights` takes off. Give the module
/// inside of a `DataParallel`.
StatePart model_part(torch::nn::Module& model);

/// `optimizer`: Lockstep's optimizers, and LibTorch's as far as
/// optim/torch_optimizer.h knows them.
StatePart optimizer_part(Optimizer& optimizer);
StatePart optimizer_part(torch::optim::Optimizer& optimizer);

/// `scheduler`, or another key. A checkpoint may lack it.
StatePart scheduler_part(Scheduler& scheduler, std::string key = "scheduler");

/// `rng`: the default generators of the CPU and of `devices`, from which all
/// replicas derive theirs (parallel/internal/random_stream.h): {'cpu': state,
/// 'cuda:1': state}. Of several ranks those of rank 0, and under 'ranks' those
/// of all, a list of them for each. A checkpoint may lack it; a device or a
/// rank that it does not know keeps its generators. Every rank saves.
StatePart generator_part(
    std::span<const c10::Device> devices = {},
    const dist::ProcessGroup& group = {});

} // namespace lockstep::train
#pragma GCC visibility pop
