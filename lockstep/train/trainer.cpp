// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/train/config_file.h"
#include "lockstep/train/evaluate.h"
#include "lockstep/train/resume_check.h"
#include "lockstep/train/sample_order.h"
#include "lockstep/train/start_lines.h"
#include "lockstep/train/state_parts.h"

namespace lockstep::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Says where what does not fit comes from.
template <class Work>
void naming_the_file(const Resumption& resumption, const Work& work) {
  try {
    work();
  } catch (const Exception& exception) {
    Error error = exception.error();
    if (error.path.empty()) {
      error.path = resumption.path;
    }
    if (error.hint.empty()) {
      error.hint = "--model, --opt, --lr-scheduler must be the checkpoint's";
    }
    raise(std::move(error));
  }
}

double percent(std::int64_t part, std::int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

Trainer::Trainer(TrainConfig config, TrainerOptions options)
    : config_(checked_flags(std::move(config))),
      options_(std::move(options)),
      setup_(
          set_up(config_, options_.own, *options_.fs, options_.world->size())),
      identity_(
          config_,
          lockstep::to_string(setup_.devices),
          setup_.strategy->name(),
          setup_.train_samples),
      outputs_(
          {.fs = options_.fs,
           .world = options_.world,
           .log = options_.log,
           .observers = options_.observers}) {
  list_state();
  if (!options_.resumption) {
    options_.resumption = find_resumption(*options_.fs, config_);
  }
  resume();
}

// Everything that a checkpoint holds, in its order. Adding to it is one line.
void Trainer::list_state() {
  state_.add(cursor_parts(cursor_, *options_.world));
  state_.add(
      {.key = "arch",
       .save = [this](ValueBuilder&) { return ckpt::Value(config_.model); },
       .load = [](const ckpt::Value&) {},
       .if_missing = IfMissing::kIgnore});
  state_.add(model_part(setup_.model.module()));
  state_.add(optimizer_part(*setup_.optimizer));
  state_.add(scheduler_part(setup_.schedule->scheduler()));
  state_.add(generator_part(setup_.devices));
  state_.add(outputs_.part()).add(options_.parts);
  state_.add(
      {.key = "args",
       .save = [this](ValueBuilder&) { return to_args(config_); },
       .load =
           [this](const ckpt::Value& saved) {
             for (const std::string& text : take_settings(config_, saved)) {
               outputs_.log(LogLevel::kWarning, text);
             }
           },
       .if_missing = IfMissing::kIgnore});
  state_.add(identity_.part());
}

void Trainer::resume() {
  const Resumption* const from = checkpoint();
  if (from == nullptr) {
    return;
  }
  const ckpt::Value& root = from->checkpoint.root;
  naming_the_file(*from, [&] {
    check(*from);
    state_.load(root);
  });
  if (root.find("cursor") == nullptr) {
    cursor_.step = cursor_.epoch * setup_.steps_of(setup_.train_samples);
    cursor_.total_samples = cursor_.epoch * setup_.train_samples;
  }
  if (root.find("scheduler") == nullptr) {
    setup_.schedule->fast_forward(cursor_.epoch, cursor_.step);
  }
  setup_.schedule->check_room(
      setup_.steps_left(config_.epochs - cursor_.epoch, cursor_.samples));
}

// What a refusal must not have changed is loaded after this.
void Trainer::check(const Resumption& from) {
  RunState only_compared;
  only_compared.add(cursor_parts(cursor_, *options_.world));
  only_compared.add(identity_.part());
  only_compared.load(from.checkpoint.root);
  const std::string text = check_resume(
      {.cursor = cursor_,
       .identity = identity_,
       .missing = state_.missing(from.checkpoint.root),
       .path = from.path},
      config_.resume_exact);
  if (!text.empty()) {
    outputs_.log(LogLevel::kWarning, text);
  }
}

TrainResult Trainer::run() {
  if (std::exchange(has_run_, true)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train",
         .message = "a Trainer runs once",
         .hint = "make another one; .resume goes on with the run"});
  }
  if (config_.test_only) {
    result_.test = evaluate(
        *setup_.strategy,
        *setup_.test_data,
        setup_.test_samples,
        *options_.world);
    return result_;
  }
  const auto start = Clock::now();
  open_outputs();
  for (const StartLine& line : start_lines(
           {config_, setup_, options_.own, options_.resumption, cursor_},
           outputs_.folder())) {
    outputs_.log(line.level, line.text);
  }
  outputs_.start(
      {.folder = outputs_.folder(),
       .epoch = cursor_.epoch,
       .step = cursor_.step,
       .samples = cursor_.samples,
       .train = cursor_.sums.score(/*seconds=*/0)});
  train_all();
  outputs_.finish();
  const double seconds = seconds_since(start);
  outputs_.log(
      LogLevel::kInfo,
      format("Training time {}", human_seconds(seconds)));
  outputs_.end(
      {.epochs = cursor_.epoch,
       .best_acc1 = cursor_.best_acc1,
       .seconds = seconds,
       .was_stopped = result_.was_stopped});
  result_.folder = outputs_.folder();
  result_.epochs = cursor_.epoch;
  result_.steps = cursor_.step;
  result_.best_acc1 = cursor_.best_acc1;
  result_.has_checkpoint = outputs_.has_checkpoint();
  return result_;
}

void Trainer::open_outputs() {
  outputs_.open(config_, options_.resumption);
  Resumption* const from = checkpoint();
  if (from == nullptr) {
    return;
  }
  if (goes_on_in_place(*options_.fs, config_, options_.resumption)) {
    saved_ = Place{.epoch = cursor_.epoch, .step = cursor_.step};
  } else {
    // A run of its own from here: killed now, it begins here again.
    save(from->is_best);
  }
  from->checkpoint.root = {}; // nothing of the mapped file is needed any more
}

void Trainer::train_all() {
  while (cursor_.epoch < config_.epochs && !result_.was_stopped) {
    train_epoch();
  }
  const Place place{.epoch = cursor_.epoch, .step = cursor_.step};
  if (result_.was_stopped && saved_ != place) {
    save(/*is_best=*/false);
  }
}

bool Trainer::is_epoch_done() const {
  return cursor_.samples >= setup_.train_samples;
}

void Trainer::train_epoch() {
  const auto start = Clock::now();
  const std::int64_t samples_before = cursor_.samples;
  setup_.train_data->start_epoch(
      sample_order(
          setup_.train_samples,
          {.seed = config_.seed,
           .epoch = cursor_.epoch,
           .consumed = cursor_.samples},
          *options_.world),
      cursor_.epoch);
  const std::int64_t batches = cursor_.batch + setup_.train_data->batches();
  while (!is_epoch_done() && !result_.was_stopped) {
    const auto step_start = Clock::now();
    const auto batch = setup_.train_data->next();
    // The order ends with the epoch's samples.
    LOCKSTEP_DCHECK(batch.has_value());
    train_step(
        *batch,
        {.batches = batches, .data_seconds = seconds_since(step_start)});
  }
  if (!result_.was_stopped) {
    const Score train =
        cursor_.sums.over(*options_.world).score(seconds_since(start));
    finish_epoch(train, cursor_.samples - samples_before);
  }
}

// The step that all runs are made of: data in, observers out.
void Trainer::train_step(const Batch& batch, StepRecord record) {
  const auto start = Clock::now();
  cursor_.lr = setup_.optimizer->param_groups().front().lr();
  setup_.optimizer->zero_grad();
  const StepResult result = setup_.strategy->step(batch);
  setup_.strategy->update(*setup_.optimizer);
  setup_.schedule->after_step();
  const BatchScore score = result.read();
  cursor_.add(score, options_.world->size(), setup_.train_samples);

  record.epoch = cursor_.epoch;
  record.step = cursor_.step;
  record.batch = cursor_.batch - 1;
  record.samples = score.samples;
  record.loss = score.loss;
  record.top1 = percent(score.top1, score.samples);
  record.top5 = percent(score.top5, score.samples);
  record.lr = cursor_.lr;
  record.seconds = record.data_seconds + seconds_since(start);
  outputs_.step(record);
  result_.was_stopped = options_.world->any(options_.should_stop());
  const bool is_due = config_.checkpoint_interval > 0 &&
                      cursor_.step % config_.checkpoint_interval == 0;
  if (is_due && !is_epoch_done()) {
    save(/*is_best=*/false);
  }
}

void Trainer::finish_epoch(const Score& train, std::int64_t samples) {
  EpochRecord record{
      .epoch = cursor_.epoch,
      .step = cursor_.step,
      .samples = cursor_.total_samples,
      .train = train,
      .test = evaluate(
          *setup_.strategy,
          *setup_.test_data,
          setup_.test_samples,
          *options_.world),
      .lr = cursor_.lr,
      .images_per_second = static_cast<double>(samples) / train.seconds};
  setup_.schedule->after_epoch();
  cursor_.finish_epoch();
  result_.test = record.test;
  const bool is_best = record.test.top1 > cursor_.best_acc1;
  cursor_.best_acc1 = std::max(cursor_.best_acc1, record.test.top1);
  outputs_.epoch(record);
  save(is_best);
  result_.was_stopped =
      result_.was_stopped || options_.world->any(options_.should_stop());
}

void Trainer::save(bool is_best) {
  outputs_.save(
      state_.save(),
      {.epoch = cursor_.epoch, .step = cursor_.step, .is_best = is_best});
  saved_ = Place{.epoch = cursor_.epoch, .step = cursor_.step};
}

} // namespace lockstep::train
