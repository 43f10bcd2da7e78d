// SPDX-License-Identifier: BSD-3-Clause
//
// What is decided before a run is built: its settings, and where it goes on.
//   const RunStart start = decide(config, options);
//   Setup setup = set_up(start, options);
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/log_sink.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/step/image_fit.h"
#include "lockstep/train/task.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {

/// Of `size` samples those that are used; `maximum` 0: all.
inline std::int64_t limited(std::int64_t size, std::int64_t maximum) {
  return maximum == 0 ? size : std::min(size, maximum);
}

struct RunStart {
  /// As the run uses them: checked, with the names of the program's parts, with
  /// what a checkpoint decides, with the size of the images.
  TrainConfig config = {};
  /// What the run folder says: where nothing is left to train, what ran before.
  TrainConfig written = {};
  /// Where the run goes on; nothing if it begins.
  std::optional<Resumption> resumption = {};
  ImageFit images = {};
  /// The program's, or the one that the settings name.
  Task task = {};
  BestBy best_by = {};
  /// The settings that differ from the checkpoint's.
  std::vector<StartLine> lines = {};

  /// What it goes on from; null if it begins, maybe in a folder that has no
  /// checkpoint yet.
  [[nodiscard]] const Resumption* checkpoint() const {
    return resumption && !resumption->path.empty() ? &*resumption : nullptr;
  }
};

/// Finds the checkpoint first: what contradicts it is refused before anything
/// is built. All ranks call it.
/// Errors: throws as `checked_flags`, `find_resumption`, `check_parts`,
/// `fit_images`; kMismatch for what the run cannot go on with, and on all ranks
/// if their settings or checkpoints differ.
RunStart decide(TrainConfig config, const TrainerOptions& options);

} // namespace lockstep::train
