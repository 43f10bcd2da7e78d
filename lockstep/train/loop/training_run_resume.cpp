// SPDX-License-Identifier: BSD-3-Clause
//
// How a trainer goes on from a checkpoint, and what it says about it.
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/train/checkpoints/run_folder.h"
#include "lockstep/train/checkpoints/trained_data.h"
#include "lockstep/train/loop/resume_check.h"
#include "lockstep/train/loop/smallest_batch.h"
#include "lockstep/train/loop/training_run.h"

namespace lockstep::train {

void TrainingRun::resume(const RunStart& start) {
  const Resumption* const from = start.checkpoint();
  if (from != nullptr) {
    naming_the_file(*from, config_, [&] { check(*from); });
  }
  if (!config_.test_only && cursor_.epoch < config_.epochs) {
    check_smallest_batch(setup_);
  }
  if (from != nullptr) {
    load(*from, start);
  }
  setup_.schedule->check_mode(cursor_.best_by);
}

// What waits for better ones waits anew.
void TrainingRun::forget_tests() {
  setup_.schedule->forget_tests();
  for (const auto& hook : setup_.hooks) {
    hook->forget_tests();
  }
}

void TrainingRun::load(const Resumption& from, const RunStart& start) {
  const ckpt::Value& root = from.checkpoint.root;
  naming_the_file(from, config_, [&] { state_.load(root); });
  setup_.lines.insert(
      setup_.lines.end(),
      start.lines.begin(),
      start.lines.end());
  if (identity_.has_other_test_data()) {
    cursor_.best.reset();
    forget_tests();
    setup_.lines.push_back(
        {LogLevel::kWarning,
         "the test data are not those of the checkpoint: its best epoch is "
         "given up, and the best is chosen anew"});
  }
  if (from.checkpoint.is_ours && has_other_best(root, cursor_.best_by)) {
    forget_tests();
    setup_.lines.push_back(
        {LogLevel::kWarning,
         format(
             "the checkpoint's best epoch was not chosen by {}: a plateau "
             "schedule and --patience begin to wait anew",
             cursor_.best_by.column)});
  }
  if (root.find("cursor") == nullptr) {
    cursor_.step = cursor_.epoch * setup_.steps_of(setup_.train_samples);
    cursor_.total_samples = cursor_.epoch * setup_.train_samples;
  }
  if (config_.test_only) {
    return; // no step is made: the schedule and what came of it do not matter
  }
  naming_the_file(from, config_, [&] {
    if (root.find("scheduler") == nullptr) {
      setup_.schedule->fast_forward(cursor_.epoch, cursor_.step);
    }
    if (root.find(kWarmupKey) == nullptr) {
      setup_.schedule->skip_warmup();
    }
    const std::int64_t epochs = config_.epochs - cursor_.epoch;
    setup_.schedule->check_room(
        epochs,
        setup_.steps_left(epochs, cursor_.samples),
        setup_.steps_of(setup_.train_samples));
  });
  if (std::string text =
          setup_.schedule->overrun_text(config_.epochs - cursor_.epoch);
      !text.empty()) {
    setup_.lines.push_back({LogLevel::kWarning, std::move(text)});
  }
  loss_watch_.check_loaded(setup_.model.module(), from.path);
}

// What a refusal must not have changed is loaded after this.
void TrainingRun::check(const Resumption& from) {
  RunState only_compared;
  only_compared.add(cursor_parts(cursor_, group_));
  only_compared.add(data_part(trained_data(*setup_.train_set, config_)));
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

std::vector<StartLine> TrainingRun::plan() const {
  const std::string named = named_folder(config_);
  std::string folder =
      named.empty()
          ? format("{}/<time>-{}", kRunsFolder, folder_word(config_.model))
          : named;
  if (from_ && goes_on_in_place(fs_, config_, from_)) {
    folder = from_->folder;
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

void TrainingRun::log(const std::vector<StartLine>& lines) {
  for (const StartLine& line : lines) {
    outputs_.log(line.level, line.text);
  }
}

} // namespace lockstep::train
