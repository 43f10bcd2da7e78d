// SPDX-License-Identifier: BSD-3-Clause
//
// Where `--resume` goes on: finds the checkpoint, checks every byte of it, and
// takes the one before if it is damaged.
//   if (auto resumption = find_resumption(real_fs(), config)) {
//     state.load(resumption->checkpoint.root);
//   }
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/train/checkpoint_layout.h"
#include "lockstep/train/config.h"

namespace lockstep::train {

/// What was found. Opened once; tensors alias the mapped file.
struct Resumption {
  /// The run's folder; empty if the file lies outside of one.
  std::string folder = {};
  /// The checkpoint; empty if the run was killed before its first one: then it
  /// begins again in `folder`.
  std::string path = {};
  RunCheckpoint checkpoint = {};
  /// Whether the run goes on in `folder`. Not from an older checkpoint or from
  /// a file outside: the newer ones stay, a new folder is made.
  bool is_in_place = true;
  /// What was passed over, and why.
  std::vector<std::string> warnings = {};
};

/// `config.resume` names a checkpoint, a run folder, or is "auto" (the folder
/// `--output`, else the newest below `runs/`) or "best" (the best checkpoint of
/// that). Nothing if it is empty, or "auto" and there is no run.
/// Errors: throws kNotFound for a path without, kCorrupt if no checkpoint is
/// whole, kMismatch for a file of another kind.
std::optional<Resumption> find_resumption(
    FileSystem& fs,
    const TrainConfig& config);

} // namespace lockstep::train
