// SPDX-License-Identifier: BSD-3-Clause
//
// The ranks of a run are started one by one, maybe on several machines: their
// flags, environments and configuration files may differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/distributed/process_group.h"
#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// Each rank would train in its own way, and their weights would part. Folders,
/// threads and devices may be a rank's own. All ranks call it.
/// Errors: throws kMismatch (E_RANKS_DIFFER), on all ranks.
void refuse_different_settings(
    const TrainConfig& config,
    const dist::ProcessGroup& group);

/// What a rank has of the data.
struct RankData {
  /// Units: samples.
  std::int64_t train_samples = 0;
  std::int64_t test_samples = 0;
  std::vector<std::string> class_names = {};
  /// `RunIdentity::digests`.
  std::string digests = {};
};

/// The trainer deals one data set to all ranks. A rank that brings its own part
/// would have that dealt again, and make another number of steps. All ranks
/// call it.
/// Errors: throws kMismatch (E_RANKS_DIFFER), on all ranks, for other numbers
/// of samples, other names of classes and other digests.
void refuse_different_data(
    const RankData& data,
    const dist::ProcessGroup& group);

} // namespace lockstep::train
