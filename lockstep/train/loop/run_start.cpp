// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/run_start.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoints/augment_file.h"
#include "lockstep/train/checkpoints/config_file.h"
#include "lockstep/train/loop/cursor.h"
#include "lockstep/train/loop/rank_settings.h"
#include "lockstep/train/loop/resume_check.h"
#include "lockstep/train/observers/run_outputs.h"
#include "lockstep/train/state_part.h"
#include "lockstep/train/step/class_details.h"
#include "lockstep/train/step/class_weights.h"
#include "lockstep/train/step/param_groups.h"
#include "lockstep/train/step/precision.h"

namespace lockstep::train {
namespace {

// Of the classes in training; a test has none.
std::vector<double>
decided_weights(TrainConfig& config, const OwnParts& own, FileSystem& fs) {
  if (config.test_only || own.train_data == nullptr) {
    return {};
  }
  const Dataset& data = *own.train_data;
  config.class_weights = resolved_class_weights(config.class_weights, data, fs);
  return class_weights(
      config.class_weights,
      data,
      limited(data.size(), config.max_train_samples));
}

/// Finds the task, and gives the settings its names.
void decide_task(
    RunStart& start,
    TrainConfig& config,
    const OwnParts& own,
    FileSystem& fs) {
  if (own.task.is_empty()) {
    start.task = task_for(
        *own.first_data(),
        config.task,
        config.metric,
        config.label_smoothing,
        decided_weights(config, own, fs));
    config.task = start.task.name;
  } else {
    start.task = own.task;
    start.task.best = config.metric == "auto" ? own.task.best : config.metric;
  }
  if (start.task.details.empty()) {
    start.task.details = class_details(start.task, *own.first_data());
  }
  if ((config.mixup_alpha != 0 || config.cutmix_alpha != 0) &&
      own.first_data()->target_format() !=
          TargetFormat{.kind = TargetKind::kClasses}) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.task",
         .message = "--mixup-alpha and --cutmix-alpha mix classes; the data "
                    "have no class for each sample",
         .detail = "E_FLAGS"});
  }
  start.best_by = start.task.best_by(own.has_test());
  config.metric =
      start.best_by.column.substr(start.best_by.column.find('_') + 1);
}

/// Where a run stands that goes on; the beginning for null.
Cursor cursor_of(
    const Resumption* from,
    const TrainConfig& config,
    const RunStart& start) {
  Cursor cursor{
      .sums = Scoring(start.task.train_metrics()),
      .best_by = start.best_by};
  if (from != nullptr) {
    RunState state;
    state.add(cursor_parts(cursor, /*group=*/{}));
    naming_the_file(*from, config, [&] { state.load(from->checkpoint.root); });
  }
  return cursor;
}

/// "goes on from checkpoint-00000024.pth.tar at epoch 3, step 24, ...".
std::string
decision_text(const Resumption* from, const Cursor& cursor, bool is_in_place) {
  return from == nullptr ? "begins anew"
                         : format(
                               "goes on from {} at epoch {}, step {}, sample "
                               "{}, {}, in {}",
                               base_name(from->path),
                               cursor.epoch + 1,
                               cursor.step,
                               cursor.samples,
                               cursor.best_text(),
                               is_in_place ? "its folder" : "a new folder");
}

/// Each rank has looked for itself. Unless all have found the same, they would
/// train different weights, and make different calls from here on.
/// Errors: throws kMismatch, on all ranks.
void refuse_different_decisions(
    const std::string& own,
    const dist::ProcessGroup& group) {
  std::vector<std::string> texts;
  for (const auto& bytes : group.all_gather_bytes(as_byte_span(own))) {
    texts.emplace_back(as_text(bytes));
  }
  const auto other = std::ranges::find_if(texts, [&](const std::string& text) {
    return text != texts.front();
  });
  if (other != texts.end()) {
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format(
             "rank 0 {}; rank {} {}",
             texts.front(),
             other - texts.begin(),
             *other),
         .hint = "all ranks must see the same run folder, on a disk that their "
                 "machines share, and no other job may write there",
         .detail = "E_RANKS_RESUME"});
  }
}

} // namespace

RunStart decide(TrainConfig given, const TrainerOptions& options) {
  const OwnParts& own = options.own;
  check_parts(given, own);
  TrainConfig config = with_own_names(checked_flags(std::move(given)), own);
  config.amp = decided_amp(config); // ranks compare it, and the run keeps it
  RunStart start;
  decide_task(start, config, own, *options.fs);
  config.augment = resolved_augment(config.augment, *options.fs);
  config.param_groups = resolved_param_groups(config.param_groups, *options.fs);
  start.resumption = options.resumption ? options.resumption
                                        : find_resumption(*options.fs, config);
  const Resumption* const from = start.checkpoint();
  const Cursor cursor = cursor_of(from, config, start);
  refuse_different_decisions(
      decision_text(
          from,
          cursor,
          goes_on_in_place(*options.fs, config, start.resumption)),
      options.group);
  // A run that goes on has its settings from there.
  refuse_different_settings(config, options.group);
  if (from != nullptr) {
    refuse_contradictions(config, *from);
  }
  start.images = fit_images(
      config.img_size,
      own.model_name,
      own.first_data()->sample_shape());
  config.img_size = start.images.size;
  const ckpt::Value* const args =
      from == nullptr ? nullptr : from->checkpoint.root.find("args");
  if (args != nullptr) {
    start.lines = take_settings(config, *args, options.sources);
  }
  start.written = config;
  if (args != nullptr && cursor.epoch >= config.epochs) {
    // Nothing is trained: what ran before is what the folder goes on to say.
    apply_args(start.written, *args);
  }
  start.config = std::move(config);
  return start;
}

} // namespace lockstep::train
