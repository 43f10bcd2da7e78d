// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/inference/trained_model.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/models/model.h"
#include "lockstep/program/internal/program_facts.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/rng.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/checkpoints/checkpoint_files.h"
#include "lockstep/train/checkpoints/config_file.h"
#include "lockstep/train/hooks/weight_average.h"
#include "lockstep/train/loop/run_identity.h"
#include "lockstep/train/loop/setup.h"
#include "lockstep/train/state_parts.h"
#include "lockstep/train/step/device_choice.h"
#include "lockstep/train/step/model_options.h"
#include "lockstep/train/step/named_model.h"
#include "lockstep/train/step/precision.h"

namespace lockstep::train {
namespace {

[[noreturn]] void no_run(std::string message, const std::string& path) {
  raise(
      {.code = ErrorCode::kNotFound,
       .op = "train.use",
       .message = std::move(message),
       .hint = "name the folder of a run, or one of its checkpoints: "
               "RUN/checkpoint.pth.tar",
       .path = path,
       .detail = "E_NO_RUN"});
}

FoundCheckpoint find_trained(const std::string& path, FileSystem& fs) {
  const auto info = fs.stat(path);
  if (!info && info.error().code == ErrorCode::kNotFound) {
    no_run("there is no such run folder or checkpoint", path);
  }
  if (info.value().kind != FileInfo::Kind::kDirectory) {
    return read_checkpoint(path, fs);
  }
  const auto names = fs.list(path).value();
  if (std::ranges::find(names, kBestFile) != names.end()) {
    const std::string best = (std::filesystem::path(path) / kBestFile).string();
    const auto target = fs.stat(best);
    if (!target && target.error().code == ErrorCode::kNotFound) {
      no_run("what the link to the best checkpoint leads to is gone", best);
    }
    return read_checkpoint(best, fs);
  }
  auto newest = find_checkpoint(path, fs);
  if (!newest) {
    no_run("the folder holds no checkpoint", path);
  }
  return *std::move(newest);
}

// As a run reads it; a hint of its own where it is none.
RunCheckpoint as_run(const FoundCheckpoint& found) {
  try {
    return to_run_checkpoint(found.root, found.path);
  } catch (const Exception& exception) {
    Error error = exception.error();
    error.op = "train.use";
    error.hint =
        "a model is used from a checkpoint of 'lockstep train', which says "
        "what it was trained on; --initial-checkpoint starts a run from "
        "weights";
    raise(std::move(error));
  }
}

// The best epoch of a run with an average is that of the average.
std::string_view weights_key(const TrainedCheckpoint& file) {
  if (file.is_ours && file.config.ema > 0 &&
      file.root.find(kAverageKey) != nullptr) {
    return kAverageKey;
  }
  const ckpt::Value* const epochs = file.root.find("swa_updates");
  const bool has_mean = file.is_ours && file.config.swa_start > 0 &&
                        epochs != nullptr && epochs->number() > 0.0 &&
                        file.root.find(kMeanKey) != nullptr;
  return has_mean ? kMeanKey : "state_dict";
}

} // namespace

TrainedCheckpoint open_trained(const std::string& path, FileSystem& fs) {
  FoundCheckpoint found = find_trained(path, fs);
  RunCheckpoint run = as_run(found);
  TrainedCheckpoint file{
      .path = found.path,
      .root = std::move(run.root),
      .is_ours = run.is_ours,
      .warnings = std::move(found.warnings)};
  if (const ckpt::Value* args = file.root.find("args")) {
    apply_args(file.config, *args);
  }
  if (const ckpt::Value* data = file.root.find(kDataPart)) {
    file.data = to_trained_data(*data);
  }
  if (const std::int64_t* epoch = file.root.find("epoch")->as_int()) {
    file.epoch = *epoch;
  }
  return file;
}

const TrainedData& required_data(const TrainedCheckpoint& file) {
  if (!file.data) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.use",
         .message = "the checkpoint does not say what the model was trained "
                    "on: it has no 'data'",
         .hint = "an older Lockstep wrote it, or another program: 'lockstep "
                 "train --resume' for one more epoch writes one that does",
         .path = file.path,
         .detail = "E_NO_TRAINED_DATA"});
  }
  return *file.data;
}

std::string arch_of(const TrainedCheckpoint& file) {
  const ckpt::Value* arch = file.root.find("arch");
  std::string name(arch == nullptr ? file.config.model : arch->text());
  if (is_named_model(name)) {
    return name;
  }
  const bool is_own = name.starts_with(kOwnPrefix);
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "train.use",
       .message = is_own ? format(
                               "the model is a program's own, '{}': only that "
                               "program can make it",
                               escape(name))
                         : format("no model is called '{}'", escape(name)),
       .hint = is_own ? "use it there: load_weights(*net, load(FILE))"
                      : "models are " + join(model_names(), ", "),
       .path = file.path,
       .detail = "E_OTHER_MODEL"});
}

std::shared_ptr<Model> make_trained(
    const TrainedCheckpoint& file,
    const TrainedData& data) {
  const std::string name = arch_of(file);
  const RngStateGuard guard; // its first weights are replaced at once
  auto model =
      make_named(name, model_options(data.num_outputs(), data.sample_shape));
  try {
    const ckpt::Value* saved = file.root.find("program");
    if (saved != nullptr && is_program_file(name)) {
      check_program(*model, *saved);
    }
    model_part(*model).load(*file.root.find(weights_key(file)));
  } catch (const Exception& exception) {
    Error error = exception.error();
    error.path = error.path.empty() ? file.path : error.path;
    raise(std::move(error));
  }
  if (has_channels_last(file.config)) {
    to_memory_format(*model, at::MemoryFormat::ChannelsLast);
  }
  return model;
}

std::unique_ptr<Strategy> strategy_of(
    const TrainedCheckpoint& file,
    const std::shared_ptr<Model>& model,
    const std::string& devices,
    Task task) {
  TrainConfig config = file.config;
  config.devices = devices;
  config.cuda = config.cuda || !devices.empty();
  prepare_process(config);
  return AnyModel(model).strategy(
      {.devices = parse_devices(choose_devices(config).spec),
       .task = std::move(task),
       .autocast = autocast_type(config.amp)});
}

} // namespace lockstep::train
