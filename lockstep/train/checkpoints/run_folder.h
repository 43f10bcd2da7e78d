// SPDX-License-Identifier: BSD-3-Clause
//
// Where a run keeps its files. A folder belongs to one running process.
//   RunFolder folder = create_run_folder(real_fs(), config);
//   write(folder.file("args.yaml"));
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/base/internal/folder_lock.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/settings/internal/run_names.h"

namespace lockstep::train {

/// A folder that exists, can be written to and is held by this process.
struct RunFolder {
  std::string path = {};
  /// The folder asked for, if that one holds another run.
  std::string taken = {};
  FolderLock lock;

  [[nodiscard]] std::string file(std::string_view name) const {
    return path + "/" + std::string(name);
  }
};

/// The folder that `--output` or `--name` names; empty if neither does.
std::string named_folder(const TrainConfig& config);

/// What a folder is called by a model: "resnet18", "own-Net" of "own:Net".
std::string folder_word(std::string_view model);

/// "./runs//a/" -> "runs/a".
std::string plain_path(const std::string& path);

/// True if `path` has settings or a checkpoint of a run.
/// Errors: throws what keeps the folder from being read.
bool holds_run(FileSystem& fs, const std::string& path);

/// Makes the folder of a new run: `wanted`, or else `--output`, or
/// `runs/<--name>`, or `runs/<time>-<model>`. One that holds a run already is
/// left alone: the new one gets the next free number ("-2"). Writes
/// `args.yaml`, so that a folder without permission or space shows before any
/// training. Errors: throws kIo.
RunFolder create_run_folder(
    FileSystem& fs,
    const TrainConfig& config,
    const std::string& wanted = {});

/// The folder of a run that goes on. `write_args` follows when nothing stands
/// in the way any more. Errors: throws kIo (E_LOCKED) if another process trains
/// in it.
RunFolder continue_run_folder(FileSystem& fs, const std::string& path);

/// `args.yaml`: the settings of now. Errors: throws kIo.
void write_args(
    FileSystem& fs,
    const RunFolder& folder,
    const TrainConfig& config);

} // namespace lockstep::train
