// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/training_run.h"

#include <cmath>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/data/augment.h"
#include "lockstep/train/loop/rank_settings.h"
#include "lockstep/train/observers/metric_row.h"
#include "lockstep/train/run/config_file.h"
#include "lockstep/train/sample_order.h"
#include "lockstep/train/state/trained_data.h"
#include "lockstep/train/state_parts.h"
#include "lockstep/train/step/evaluate.h"

namespace lockstep::train {
namespace {

// A step of all ranks together.
struct SharedStep {
  Scoring batch = {};
  /// Some rank was asked to stop.
  bool shall_stop = false;
};

// One exchange for all that the ranks tell each other in a step.
SharedStep shared(
    const BatchScore& own,
    bool shall_stop,
    const dist::ProcessGroup& group) {
  std::vector<double> sums{
      static_cast<double>(own.loss) * static_cast<double>(own.samples),
      static_cast<double>(own.samples),
      shall_stop ? 1.0 : 0.0};
  constexpr std::ptrdiff_t kBeforeMetrics = 3;
  sums.insert(sums.end(), own.sums.begin(), own.sums.end());
  group.sum(sums);
  SharedStep all{.shall_stop = sums[2] > 0};
  all.batch.loss = sums[0];
  all.batch.samples = static_cast<std::int64_t>(sums[1]);
  all.batch.sums.assign(sums.begin() + kBeforeMetrics, sums.end());
  return all;
}

} // namespace

TrainingRun::TrainingRun(const RunStart& start, const TrainerOptions& options)
    : config_(start.config),
      written_(start.written),
      from_(start.resumption),
      fs_(*options.fs),
      group_(options.group),
      own_(options.own),
      should_stop_(options.should_stop),
      setup_(set_up(start, options)),
      identity_(
          config_,
          setup_.devices,
          setup_.strategy->name(),
          setup_.train_samples),
      outputs_(
          {.fs = options.fs,
           .group = options.group,
           .log = options.log,
           .results_header = results_header(
               infos_of(task().train_metrics()),
               infos_of(task().metrics)),
           .observers = options.observers}),
      loss_watch_(config_, group_, [this] {
        return outputs_.settled_checkpoint();
      }) {
  refuse_different_data(setup_.train_samples, setup_.test_samples, group_);
  cursor_.best_by = start.best_by;
  cursor_.sums = Scoring(task().train_metrics());
  list_state(options.parts);
  resume(start);
}

// Everything that a checkpoint holds, in its order. Adding to it is one line.
void TrainingRun::list_state(const std::vector<StatePart>& parts) {
  state_.add(cursor_parts(cursor_, group_));
  state_.add(
      {.key = "arch",
       .save = [this](ValueBuilder&) { return ckpt::Value(config_.model); },
       .load = [](const ckpt::Value&) {},
       .if_missing = IfMissing::kIgnore});
  state_.add(data_part(trained_data(*setup_.train_set, config_)));
  state_.add(model_part(setup_.model.module()));
  state_.add(optimizer_part(setup_.strategy->optimizer()));
  state_.add(scheduler_part(setup_.schedule->scheduler()));
  state_.add(generator_part(setup_.devices, group_));
  if (group_) {
    state_.add(bucket_part(*setup_.strategy));
  }
  state_.add(outputs_.part()).add(parts);
  state_.add(
      {.key = "args",
       .save = [this](ValueBuilder&) { return to_args(config_); },
       .load = [](const ckpt::Value&) {}, // `decide` has read them
       .if_missing = IfMissing::kIgnore});
  state_.add(identity_.part());
}

TrainResult TrainingRun::run() {
  if (std::exchange(has_run_, true)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train",
         .message = "a Trainer runs once",
         .hint = "make another one; .resume goes on with the run"});
  }
  if (config_.test_only) {
    log(setup_.lines);
    result_.test = test();
    return result_;
  }
  const Stopwatch watch;
  open_outputs();
  log(start_lines(starting(), outputs_.folder()));
  outputs_.start(start_record(starting(), outputs_.folder()));
  train_all();
  outputs_.finish();
  result_.best_by = cursor_.best_by;
  result_.best = cursor_.best;
  outputs_.end(
      {.epochs = cursor_.epoch,
       .best = cursor_.best,
       .times = of_all_ranks(watch.times(), group_),
       .was_stopped = result_.was_stopped});
  result_.folder = outputs_.folder();
  result_.epochs = cursor_.epoch;
  result_.steps = cursor_.step;
  result_.has_checkpoint = group_.any(outputs_.has_checkpoint());
  return result_;
}

std::optional<Score> TrainingRun::test() {
  if (setup_.test_data == nullptr) {
    return std::nullopt;
  }
  return evaluate(
      *setup_.strategy,
      *setup_.test_data,
      setup_.test_samples,
      group_);
}

void TrainingRun::open_outputs() {
  outputs_.open(written_, from_);
  if (!from_ || from_->path.empty()) {
    return;
  }
  if (goes_on_in_place(fs_, config_, from_)) {
    saved_ = Place{.epoch = cursor_.epoch, .step = cursor_.step};
  } else {
    // A run of its own from here: killed now, it begins here again.
    save(from_->is_best);
  }
}

void TrainingRun::train_all() {
  // Accelerators go on with the next step while the numbers of one are looked
  // at. Ranks exchange them: all at the same place.
  runs_ahead_ = !group_.any(setup_.devices.front().is_cpu());
  while (cursor_.epoch < config_.epochs && !result_.was_stopped) {
    train_epoch();
  }
  const Place place{.epoch = cursor_.epoch, .step = cursor_.step};
  if (result_.was_stopped && saved_ != place) {
    save(/*is_best=*/false);
  }
}

bool TrainingRun::is_epoch_done() const {
  return cursor_.samples >= setup_.train_samples;
}

void TrainingRun::train_epoch() {
  epoch_watch_ = {};
  step_watch_ = {};
  const std::int64_t samples_before = cursor_.samples;
  setup_.train_data->start_epoch(
      sample_order(
          setup_.train_samples,
          {.seed = config_.seed,
           .epoch = cursor_.epoch,
           .consumed = cursor_.samples},
          group_),
      cursor_.epoch);
  const std::int64_t batches = cursor_.batch + setup_.train_data->batches();
  while (!is_epoch_done() && !result_.was_stopped) {
    const Stopwatch watch;
    const auto batch = next_batch();
    // The order ends with the epoch's samples.
    LOCKSTEP_CHECK(batch.has_value());
    train_step(*batch, {.batches = batches, .data_seconds = watch.seconds()});
  }
  finish_step();
  if (!result_.was_stopped) {
    finish_epoch(cursor_.samples - samples_before);
  }
}

// Depends on the place in the run alone, so it goes on with the same bits.
Batch TrainingRun::mixed(const Batch& batch) const {
  return mix_batch(
      batch,
      {.alpha = config_.mixup_alpha,
       .num_classes = setup_.train_set->num_classes(),
       .seed = config_.seed,
       .epoch = cursor_.epoch,
       .batch = cursor_.batch * group_.size() + group_.rank()},
      config_.cutmix_alpha);
}

std::optional<Batch> TrainingRun::next_batch() {
  try {
    auto batch = setup_.train_data->next();
    return batch ? std::optional(mixed(*batch)) : std::nullopt;
  } catch (...) {
    if (group_.size() == 1) { // others would not exchange its numbers
      finish_step();
    }
    throw;
  }
}

// The step that all runs are made of: data in, observers out.
void TrainingRun::train_step(const Batch& batch, StepRecord record) {
  Strategy& strategy = *setup_.strategy;
  cursor_.lr = strategy.optimizer().param_groups().front().lr();
  strategy.optimizer().zero_grad();
  StepResult result = strategy.step(batch);
  strategy.update();
  setup_.schedule->after_step();
  cursor_.count(batch.size(), group_.size(), setup_.train_samples);
  record.epoch = cursor_.epoch + 1;
  record.step = cursor_.step;
  record.batch = cursor_.batch - 1;
  record.lr = cursor_.lr;
  finish_step();
  running_ = Running{.record = record, .result = std::move(result)};
  const bool is_due = config_.checkpoint_interval > 0 &&
                      cursor_.step % config_.checkpoint_interval == 0;
  if (is_due || is_epoch_done() || !runs_ahead_) {
    finish_step();
  }
  if (is_due && !is_epoch_done()) {
    save(/*is_best=*/false);
  }
}

// Waits for the step that was queued last, and tells of it.
void TrainingRun::finish_step() {
  if (!running_) {
    return;
  }
  Running running = std::move(*running_);
  running_.reset();
  StepRecord& record = running.record;
  const BatchScore score = running.result.read();
  cursor_.sums.add(score);
  const SharedStep all = shared(score, should_stop_(), group_);
  record.samples = all.batch.samples;
  Score averages = all.batch.score(task().train_metrics(), /*seconds=*/0);
  record.loss = static_cast<float>(averages.loss);
  record.metrics = std::move(averages.metrics);
  record.seconds = step_watch_.seconds();
  record.epoch_seconds = epoch_watch_.seconds();
  step_watch_ = {};
  outputs_.step(record);
  result_.was_stopped = result_.was_stopped || all.shall_stop;
  if (!std::isfinite(record.loss)) {
    loss_watch_.bad_step(record);
  }
}

void TrainingRun::finish_epoch(std::int64_t samples) {
  const Score train = cursor_.sums.over(group_).score(
      task().train_metrics(),
      epoch_watch_.seconds());
  EpochRecord record{
      .epoch = cursor_.epoch + 1,
      .step = cursor_.step,
      .samples = cursor_.total_samples,
      .train = train,
      .test = test(),
      .best_by = cursor_.best_by,
      .lr = cursor_.lr,
      .images_per_second = static_cast<double>(samples) / train.seconds};
  record.times = of_all_ranks(epoch_watch_.times(), group_);
  setup_.schedule->after_epoch();
  cursor_.finish_epoch();
  result_.test = record.test;
  record.is_best = cursor_.take_best(record);
  outputs_.epoch(record);
  if (const std::string text = loss_watch_.end_epoch(record); !text.empty()) {
    outputs_.log(LogLevel::kWarning, text);
  }
  save(record.is_best);
  result_.was_stopped = result_.was_stopped || group_.any(should_stop_());
}

void TrainingRun::save(bool is_best) {
  loss_watch_.check_state(setup_.model.module(), cursor_.step);
  outputs_.save(
      state_.save(),
      {.epoch = cursor_.epoch, .step = cursor_.step, .is_best = is_best});
  saved_ = Place{.epoch = cursor_.epoch, .step = cursor_.step};
  step_watch_ = {};
}

} // namespace lockstep::train
