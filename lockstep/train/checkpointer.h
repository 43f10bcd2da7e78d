// SPDX-License-Identifier: BSD-3-Clause
//
// The checkpoint of a run: a plain dict that Python's safe loader reads, with
// the keys `epoch, arch, state_dict, best_acc1, optimizer, scheduler, args`
// (`epoch` is the next one to do; `state_dict` has no "module." prefix) and
// the generator's state under `rng`.
#pragma once

#include <cstdint>
#include <string>

#include <torch/nn/module.h>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/scheduler.h"
#include "lockstep/train/config.h"
#include "lockstep/train/run_folder.h"

namespace lockstep::train {

/// What training changes, besides the files. Ownership: borrowed.
struct TrainState {
  torch::nn::Module& model;
  Optimizer& optimizer;
  Scheduler& scheduler;
  /// The next epoch to do.
  std::int64_t epoch = 0;
  /// Units: percent; the best test accuracy so far.
  double best_acc1 = 0.0;
};

/// Writes the state as `checkpoint.pth.tar` and, if `is_best`, also as
/// `model_best.pth.tar`. Atomic: after an error the old files are whole.
/// Errors: kIo with the bytes needed and free.
Status save_checkpoint(
    FileSystem& fs,
    const RunFolder& folder,
    const TrainConfig& config,
    const TrainState& state,
    bool is_best);

/// A checkpoint file opened by `--resume`.
struct Resumed {
  std::string path = {};
  ckpt::Value root = {};
};

/// Opens `path` and checks that it is a checkpoint of a run.
/// Errors: throws kMismatch that names the missing keys and says what to do;
/// what opening the file returned.
Resumed open_checkpoint(FileSystem& fs, const std::string& path);

/// Puts a checkpoint into `state` (and the generator).
/// Errors: throws kMismatch if model, optimizer or schedule differ.
void restore(const Resumed& checkpoint, TrainState& state);

} // namespace lockstep::train
