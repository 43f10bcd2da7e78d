// SPDX-License-Identifier: BSD-3-Clause
//
// How a trainer goes on from a checkpoint, and what it says about it.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/group_fit.h"
#include "lockstep/train/precision.h"
#include "lockstep/train/rank_settings.h"
#include "lockstep/train/resume_check.h"
#include "lockstep/train/run_folder.h"
#include "lockstep/train/smallest_batch.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {
namespace {

/// Says where what does not fit comes from, and which flag would fit.
template <class Work>
void naming_the_file(
    const Resumption& resumption,
    const TrainConfig& config,
    const Work& work) {
  try {
    work();
  } catch (const Exception& exception) {
    Error error = exception.error();
    if (error.path.empty()) {
      error.path = resumption.path;
    }
    const std::string hint = state_hint(resumption, config);
    if (error.op == "optim.load" && !hint.empty()) {
      error.hint = hint;
    }
    if (error.hint.empty()) {
      error.hint = error.op == "tensor.load"
                       ? "--model must be the checkpoint's"
                       : "--model, --opt, --lr-scheduler must be the "
                         "checkpoint's";
    }
    if (error.detail.empty()) {
      error.detail = "E_BAD_STATE";
    }
    raise(std::move(error));
  }
}

/// "goes on from checkpoint-00000024.pth.tar at epoch 3, step 24, ...".
std::string decision_text(
    const Resumption* from,
    const TrainConfig& config,
    BestBy best_by,
    bool is_in_place) {
  if (from == nullptr) {
    return "begins anew";
  }
  Cursor cursor{.best_by = best_by};
  RunState state;
  state.add(cursor_parts(cursor, world_of_one()));
  naming_the_file(*from, config, [&] { state.load(from->checkpoint.root); });
  return format(
      "goes on from {} at epoch {}, step {}, sample {}, {}, in {}",
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
void refuse_different_decisions(const std::string& own, World& world) {
  std::vector<std::string> texts;
  for (const auto& bytes : world.gather(as_byte_span(own))) {
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

// Finds the checkpoint first: what contradicts it is refused before anything is
// built, and weights that it replaces need not be there any more.
TrainConfig Trainer::config_to_set_up() {
  config_.amp = decided_amp(config_); // ranks compare it, and the run keeps it
  if (!options_.resumption) {
    options_.resumption = find_resumption(*options_.fs, config_);
  }
  const Resumption* const from = checkpoint();
  refuse_different_decisions(
      decision_text(
          from,
          config_,
          options_.own.best_by(),
          goes_on_in_place(*options_.fs, config_, options_.resumption)),
      *options_.world);
  // A run that goes on has its settings from there.
  refuse_different_settings(config_, *options_.world);
  if (from == nullptr) {
    return config_;
  }
  refuse_contradictions(config_, *from);
  TrainConfig config = config_;
  config.initial_checkpoint.clear();
  return config;
}

// The optimizer is made anew where the file's has other groups: what refers to
// it comes after.
void Trainer::take_groups() {
  const Resumption* const from = checkpoint();
  const ckpt::Value* state =
      from == nullptr ? nullptr : from->checkpoint.root.find("optimizer");
  if (state == nullptr) {
    return;
  }
  naming_the_file(*from, config_, [&] {
    auto fit = fit_groups(*state, setup_.model.module());
    if (!fit) {
      return;
    }
    setup_.schedule.reset();
    setup_.optimizer = build_optimizer(config_, std::move(fit->groups));
    setup_.schedule = std::make_unique<Schedule>(
        config_,
        *setup_.optimizer,
        setup_.steps_of(setup_.train_samples));
    setup_.lines.push_back({.text = std::move(fit->note)});
  });
}

void Trainer::resume() {
  const Resumption* const from = checkpoint();
  if (from != nullptr) {
    naming_the_file(*from, config_, [&] { check(*from); });
  }
  if (!config_.test_only && cursor_.epoch < config_.epochs) {
    check_smallest_batch(setup_);
  }
  if (from == nullptr) {
    return;
  }
  const ckpt::Value& root = from->checkpoint.root;
  naming_the_file(*from, config_, [&] { state_.load(root); });
  if (root.find("cursor") == nullptr) {
    cursor_.step = cursor_.epoch * setup_.steps_of(setup_.train_samples);
    cursor_.total_samples = cursor_.epoch * setup_.train_samples;
  }
  if (config_.test_only) {
    return; // no step is made: the schedule and what came of it do not matter
  }
  naming_the_file(*from, config_, [&] {
    if (root.find("scheduler") == nullptr) {
      setup_.schedule->fast_forward(cursor_.epoch, cursor_.step);
    }
    setup_.schedule->check_room(
        setup_.steps_left(config_.epochs - cursor_.epoch, cursor_.samples),
        setup_.steps_of(setup_.train_samples));
  });
  if (std::string text =
          setup_.schedule->overrun_text(config_.epochs - cursor_.epoch);
      !text.empty()) {
    setup_.lines.push_back({LogLevel::kWarning, std::move(text)});
  }
  loss_watch_.check_loaded(setup_.model.module(), from->path);
}

// What a refusal must not have changed is loaded after this.
void Trainer::check(const Resumption& from) {
  RunState only_compared;
  only_compared.add(cursor_parts(cursor_, *options_.world));
  only_compared.add(identity_.part());
  only_compared.load(from.checkpoint.root);
  for (const std::string& text : check_resume(
           {.cursor = cursor_,
          .identity = identity_,
          .missing = state_.missing(from.checkpoint.root),
          .path = from.path},
           config_)) {
    setup_.lines.push_back({LogLevel::kWarning, text});
  }
}

void Trainer::take_settings(const ckpt::Value& saved) {
  for (StartLine& line :
       lockstep::train::take_settings(config_, saved, options_.sources)) {
    setup_.lines.push_back(std::move(line));
  }
}

std::vector<StartLine> Trainer::plan() const {
  const std::string named = named_folder(config_);
  std::string folder =
      named.empty()
          ? format("{}/<time>-{}", kRunsFolder, folder_word(config_.model))
          : named;
  if (options_.resumption &&
      goes_on_in_place(*options_.fs, config_, options_.resumption)) {
    folder = options_.resumption->folder;
  }
  std::vector<StartLine> lines = start_lines(starting(), folder);
  lines.push_back(
      {.text = format(
           "steps: {} per epoch, {} to go",
           setup_.steps_of(setup_.train_samples),
           setup_.steps_left(
               config_.epochs - cursor_.epoch,
               cursor_.samples))});
  return lines;
}

void Trainer::log(const std::vector<StartLine>& lines) {
  for (const StartLine& line : lines) {
    outputs_.log(line.level, line.text);
  }
}

} // namespace lockstep::train
