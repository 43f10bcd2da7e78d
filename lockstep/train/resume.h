// SPDX-License-Identifier: BSD-3-Clause
//
// Where `--resume` goes on: finds the checkpoint, checks every byte of it, and
// takes the one before if it is damaged.
//   if (auto resumption = find_resumption(real_fs(), config)) {
//     state.load(resumption->checkpoint.root);
//   }
// A loop of one's own, which has no TrainConfig:
//   if (auto found = find_checkpoint(folder)) {
//     state.load(found->root);
//   }
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/train/checkpoint_layout.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// Where a run goes on.
struct ResumePoint {
  /// The run's folder; empty if the file lies outside of one.
  std::string folder = {};
  /// The checkpoint; empty if the run was killed before its first one: then it
  /// begins again in `folder`.
  std::string path = {};
  /// Whether the run goes on in `folder`. Not from an older checkpoint, nor
  /// from a file outside or of another program: theirs stay, a new folder is
  /// made.
  bool is_in_place = true;
  /// Whether `model_best.pth.tar` leads to it.
  bool is_best = false;
  /// The newest checkpoint of `folder`, usable or not; empty if there is none.
  std::string newest = {};
  /// Whether the checkpoint was taken right after the first epoch: then that is
  /// the best one so far.
  bool ends_first_epoch = false;
  /// What was passed over, and why.
  std::vector<std::string> warnings = {};
  /// What was understood of a form that is not ours.
  std::vector<std::string> notes = {};
};

/// What was found there. Opened once; tensors alias the mapped file.
struct Resumption : ResumePoint {
  RunCheckpoint checkpoint = {};
};

/// The newest checkpoint in `folder`, whole or not; empty if there is none.
/// Errors: kIo.
Result<std::string> newest_checkpoint(
    FileSystem& fs,
    const std::string& folder);

/// `config.resume` names a checkpoint, a run folder, or is "auto" (the folder
/// `--output` or `runs/<--name>`, else the newest below `runs/`) or "best" (the
/// best checkpoint of that). Nothing if it is empty, or "auto" and there is no
/// run. Errors: throws kNotFound for a path without, kCorrupt if no checkpoint
/// is whole, kMismatch for a file of another kind.
std::optional<Resumption> find_resumption(
    FileSystem& fs,
    const TrainConfig& config);

/// A file of which every byte was checked.
struct FoundCheckpoint {
  std::string path = {};
  /// As it was saved, its tensors on the CPU. They alias the mapped file.
  ckpt::Value root = {};
  /// What was passed over, and why.
  std::vector<std::string> warnings = {};
};

/// The file of that name, once every byte of it was checked.
/// Errors: throws kNotFound, kCorrupt, or what else keeps it from being read.
FoundCheckpoint read_checkpoint(
    const std::string& path,
    FileSystem& fs = real_fs());

/// The newest whole checkpoint that a `CheckpointWriter` left in `folder`.
/// Nothing if there is none, or no folder.
/// Errors: throws kCorrupt, or what else it was, if none can be used.
std::optional<FoundCheckpoint> find_checkpoint(
    const std::string& folder,
    FileSystem& fs = real_fs());

} // namespace lockstep::train
