// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/eval_job.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/train/inference/mapped_classes.h"
#include "lockstep/train/step/image_fit.h"
#include "lockstep/train/trainer.h"

namespace lockstep::cli_train {
namespace {

using train::TrainConfig;
using train::TrainedCheckpoint;
using train::TrainedData;
using Parts = std::vector<std::shared_ptr<const Dataset>>;

[[noreturn]] void refuse_eval(
    ErrorCode code,
    std::string_view detail,
    std::string message,
    std::string hint) {
  raise(
      {.code = code,
       .op = "eval",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = std::string(detail)});
}

// The run's settings, with the data that are asked for.
TrainConfig settings_of(
    const TrainedCheckpoint& file,
    const std::string& data) {
  TrainConfig config = file.config;
  config.model = train::arch_of(file);
  config.augment = "none"; // also of the training part
  const std::vector<std::string> names = dataset_names();
  if (data.empty()) {
    if (config.data.starts_with(train::kOwnPrefix)) {
      refuse_eval(
          ErrorCode::kUnsupported,
          "E_OWN_PARTS",
          format(
              "the run's data are a program's own, '{}'",
              escape(config.data)),
          "--data names others, or that program tests with "
          "TrainConfig::test_only");
    }
    if (!file.is_ours) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = "eval",
           .message = "another program wrote the checkpoint, which does not "
                      "say on which data",
           .hint = "--data names them",
           .path = file.path,
           .detail = "E_NO_TRAINED_DATA"});
    }
    return config;
  }
  if (std::ranges::find(names, data) != names.end()) {
    config.data_dir = data == config.data ? config.data_dir : "";
    config.data = data;
    return config;
  }
  config.data = dataset_at(data);
  config.data_dir = data;
  return config;
}

Parts chosen_parts(const train::OwnParts& own, const std::string& part) {
  Parts parts;
  if (part != "test") {
    parts.push_back(own.train_data);
  }
  if (part != "train" && own.has_test()) {
    parts.push_back(own.test_data);
  }
  if (parts.empty()) {
    refuse_eval(
        ErrorCode::kNotFound,
        "E_NO_DATA",
        "the data have no part for a test",
        "--part train takes the part for training");
  }
  return parts;
}

// The samples as the model takes them.
std::shared_ptr<const Dataset> fitting(
    std::shared_ptr<const Dataset> data,
    const TrainedData& trained) {
  const std::vector<std::int64_t>& shape = trained.sample_shape;
  const bool is_square = shape.size() == 3 && shape[1] == shape[2];
  if (is_square && data->sample_shape().size() == 3) {
    data = train::resized(std::move(data), {.size = shape[1]});
  }
  const auto text = [](const std::vector<std::int64_t>& sizes) {
    std::vector<std::string> parts;
    parts.reserve(sizes.size());
    for (const std::int64_t size : sizes) {
      parts.push_back(std::to_string(size));
    }
    return join(parts, " x ");
  };
  if (data->sample_shape() != shape) {
    refuse_eval(
        ErrorCode::kMismatch,
        "E_OTHER_DATA",
        format(
            "the model was trained on samples of {}, the data have {}",
            text(shape),
            text(data->sample_shape())),
        "--data names data of the same kind");
  }
  const PixelFormat was = trained.pixels;
  const PixelFormat now = data->pixel_format();
  if (was.is_known() && now.is_known() &&
      (was.mean != now.mean || was.std != now.std)) {
    refuse_eval(
        ErrorCode::kMismatch,
        "E_OTHER_DATA",
        "pixels of the data become other numbers than those that the model was "
        "trained on: mean and std differ",
        "--data names data of the same kind");
  }
  return data;
}

// What an older file does not say, its data do.
TrainedData data_of(
    const TrainedCheckpoint& file,
    const TrainConfig& config,
    const Parts& parts) {
  if (file.data) {
    return *file.data;
  }
  const auto& first = parts.front();
  const auto resized = train::resized(
      first,
      train::fit_images(config.img_size, config.model, first->sample_shape()));
  TrainedData data = train::trained_data(*resized, config);
  if (data.task == "auto") {
    data.task = train::task_for(*resized).name;
  }
  return data;
}

train::Task task_of(const Dataset& data, const TrainedData& trained) {
  if (trained.task.starts_with(train::kOwnPrefix)) {
    refuse_eval(
        ErrorCode::kUnsupported,
        "E_TASK",
        format(
            "the run's task is a program's own, '{}': only that program can "
            "measure it",
            escape(trained.task)),
        "TrainConfig::test_only tests there");
  }
  return train::task_for(data, trained.task, trained.metric);
}

} // namespace

EvalAnswer evaluate_run(const EvalRequest& request) {
  const TrainedCheckpoint file = train::open_trained(request.model);
  const TrainConfig config = settings_of(file, request.data);
  const train::OwnParts own = train::named_data(config);
  Parts parts = chosen_parts(own, request.part);
  const TrainedData trained = data_of(file, config, parts);
  for (auto& part : parts) {
    part = fitting(train::with_classes_of(std::move(part), trained), trained);
  }
  const train::Task task = task_of(*parts.front(), trained);
  const auto strategy = train::strategy_of(
      file,
      train::make_trained(file, trained),
      request.devices,
      task);
  EvalAnswer answer{
      .file = file.path,
      .model = config.model,
      .epoch = file.epoch,
      .task = task.name,
      .data = config.data,
      .data_dir = config.data_dir,
      .part = request.part,
      .trained = trained,
      .parts = parts,
      .notes = file.warnings};
  for (const auto* texts : {&own.data_notes, &own.data_warnings}) {
    answer.notes.insert(answer.notes.end(), texts->begin(), texts->end());
  }
  answer.found = train::evaluate_all(
      *strategy,
      parts,
      trained,
      task,
      {.batch_size = request.batch_size > 0      ? request.batch_size
                     : config.val_batch_size > 0 ? config.val_batch_size
                                                 : config.batch_size,
       .workers = request.workers,
       .worst = request.worst});
  return answer;
}

} // namespace lockstep::cli_train
