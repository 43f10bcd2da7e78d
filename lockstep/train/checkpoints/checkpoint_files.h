// SPDX-License-Identifier: BSD-3-Clause
//
// The checkpoints in a run folder: one file per checkpoint, named by its step,
// and two links to them. Python opens a link as it opens a file.
//   checkpoint-00000938.pth.tar
//   checkpoint.pth.tar -> checkpoint-00000938.pth.tar     (the newest)
//   model_best.pth.tar -> checkpoint-00000938.pth.tar     (the best so far)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/fs.h"

namespace lockstep::train {

inline constexpr std::string_view kLatestFile = "checkpoint.pth.tar";
inline constexpr std::string_view kBestFile = "model_best.pth.tar";

/// "checkpoint-00000938.pth.tar".
std::string checkpoint_name(std::int64_t step);

/// The step of a name made by `checkpoint_name`; nothing for another name.
std::optional<std::int64_t> checkpoint_step(std::string_view name);

/// Names in `folder` made by `checkpoint_name`, the highest step first.
/// Errors: as `FileSystem::list`.
Result<std::vector<std::string>> list_checkpoints(
    FileSystem& fs,
    const std::string& folder);

/// Removes all before the `keep` newest, which end with the one that
/// `checkpoint.pth.tar` leads to; the best one stays, too, and so does what is
/// beyond the newest or has another name.
/// Errors: kIo for the first that cannot be removed; the others are. If a link
/// cannot be read, none is.
Status
prune_checkpoints(FileSystem& fs, const std::string& folder, std::int64_t keep);

} // namespace lockstep::train
