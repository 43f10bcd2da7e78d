// SPDX-License-Identifier: BSD-3-Clause
//
// Where a run keeps its files, and where `--resume` finds them.
//   RunFolder folder = create_run_folder(real_fs(), config);
//   write(folder.file("args.yaml"));
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/train/config.h"

namespace lockstep::train {

inline constexpr std::string_view kCheckpointFile = "checkpoint.pth.tar";
inline constexpr std::string_view kBestFile = "model_best.pth.tar";
inline constexpr std::string_view kArgsFile = "args.yaml";

/// A folder that exists and can be written to.
struct RunFolder {
  std::string path = {};
  /// The folder asked for, if that one holds another run.
  std::string taken = {};

  [[nodiscard]] std::string file(std::string_view name) const {
    return path + "/" + std::string(name);
  }
};

/// Makes the folder of a new run: `--output`, or `runs/<--name>`, or
/// `runs/<time>-<model>`. One that holds a run already is left alone: the new
/// one gets the next free number ("-2"). Writes `args.yaml`, so that a folder
/// without permission or space shows before any training.
/// Errors: throws kIo.
RunFolder create_run_folder(FileSystem& fs, const TrainConfig& config);

/// The folder of a run that goes on; `args.yaml` gets the settings of now.
/// Errors: throws kIo.
RunFolder continue_run_folder(
    FileSystem& fs,
    const std::string& path,
    const TrainConfig& config);

/// The checkpoint that `--resume` means: a file, the one inside a run folder,
/// or for "auto" the one in `--output`, else the newest below `runs/`.
/// Nothing if "auto" finds none. Errors: throws kNotFound for a path without.
std::optional<std::string> find_checkpoint(
    FileSystem& fs,
    const TrainConfig& config);

} // namespace lockstep::train
