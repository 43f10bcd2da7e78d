// SPDX-License-Identifier: BSD-3-Clause
//
// A model as its checkpoint has it, without a command line and without data.
//   const TrainedCheckpoint file = open_trained("runs/animals");
//   const auto model = make_trained(file, required_data(file));
//   const auto strategy = strategy_of(file, model, {});
//   at::Tensor outputs = strategy->predict(images);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/models/model.h"
#include "lockstep/train/checkpoints/trained_data.h"
#include "lockstep/train/settings/config.h"
#include "lockstep/train/strategy.h"
#include "lockstep/train/task.h"

namespace lockstep::train {

/// A checkpoint, and what it says.
struct TrainedCheckpoint {
  /// The file.
  std::string path = {};
  /// In Lockstep's form.
  ckpt::Value root = {};
  /// Whether Lockstep wrote it: other files do not name their data.
  bool is_ours = false;
  /// Of the run, as far as the file says it.
  TrainConfig config = {};
  /// Nothing in a file of Lockstep before it had them, and of other programs.
  std::optional<TrainedData> data = {};
  /// Epochs that were done.
  std::int64_t epoch = 0;
  /// Checkpoints that were passed over, and why.
  std::vector<std::string> warnings = {};
};

/// The best checkpoint of a run folder, its newest if none was the best; or a
/// file. Every byte is checked.
/// Errors: throws kNotFound (E_NO_RUN) for a path without, and for a best
/// checkpoint that is gone; kCorrupt, kMismatch (E_NOT_A_RUN) for a file of
/// another kind; what else keeps the best one from being read.
TrainedCheckpoint open_trained(
    const std::string& path,
    FileSystem& fs = real_fs());

/// What the model was trained on.
/// Errors: throws kMismatch (E_NO_TRAINED_DATA) if the file does not say it.
const TrainedData& required_data(const TrainedCheckpoint& file);

/// The model's name. Errors: throws kUnsupported (E_OTHER_MODEL) for a
/// program's own model and for one that is not known.
std::string arch_of(const TrainedCheckpoint& file);

/// The model of `file`, made for `data`, with its weights, on the CPU.
/// Errors: as `arch_of`; throws kMismatch for weights of another model.
std::shared_ptr<Model> make_trained(
    const TrainedCheckpoint& file,
    const TrainedData& data);

/// What runs the model: the threads, kernels and types of numbers are those of
/// the run, the devices those of `devices` ("cpu*2", "cuda"), or the best that
/// are here.
/// Errors: as `parse_devices`.
std::unique_ptr<Strategy> strategy_of(
    const TrainedCheckpoint& file,
    const std::shared_ptr<Model>& model,
    const std::string& devices,
    Task task = classification());

} // namespace lockstep::train
