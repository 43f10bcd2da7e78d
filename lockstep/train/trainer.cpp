// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/trainer.h"

#include <array>
#include <cmath>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/train/config_file.h"
#include "lockstep/train/evaluate.h"
#include "lockstep/train/rank_settings.h"
#include "lockstep/train/sample_order.h"
#include "lockstep/train/state_parts.h"

namespace lockstep::train {
namespace {

// A step of all ranks together.
struct SharedStep {
  Scoring batch = {};
  /// Some rank was asked to stop.
  bool shall_stop = false;
};

// One exchange for all that the ranks tell each other in a step.
SharedStep shared(const BatchScore& own, bool shall_stop, World& world) {
  std::array<double, 5> sums{
      static_cast<double>(own.loss) * static_cast<double>(own.samples),
      static_cast<double>(own.top1),
      static_cast<double>(own.top5),
      static_cast<double>(own.samples),
      shall_stop ? 1.0 : 0.0};
  world.sum(sums);
  return {
      .batch =
          {.loss = sums[0],
           .top1 = static_cast<std::int64_t>(sums[1]),
           .top5 = static_cast<std::int64_t>(sums[2]),
           .samples = static_cast<std::int64_t>(sums[3])},
      .shall_stop = sums[4] > 0};
}

// The group of a job that nobody named: its processes would each train a run
// of their own, and write it.
dist::ProcessGroup joined_group(const TrainerOptions& options) {
  if (options.group || !options.joins_job || options.world != &world_of_one()) {
    return options.group;
  }
  if (dist::is_initialized()) {
    const dist::ProcessGroup group = dist::default_group();
    return group.size() > 1 ? group : dist::ProcessGroup();
  }
  return rank_info_from_environment().value().size > 1
             ? dist::init_process_group()
             : dist::ProcessGroup();
}

// Of a group that is not the job's, the ranks count as those of one machine.
RankInfo place_in(const dist::ProcessGroup& group) {
  if (!group) {
    return {};
  }
  const auto told = job_rank();
  if (told && told->size == group.size() && told->rank == group.rank()) {
    return *told;
  }
  return {
      .rank = group.rank(),
      .size = group.size(),
      .local_rank = group.rank(),
      .local_size = 0};
}

// A group is a world of its own.
TrainerOptions with_world(
    TrainerOptions options,
    std::optional<dist::GroupWorld>& world) {
  options.group = joined_group(options);
  if (options.group) {
    options.world = &world.emplace(options.group);
  }
  if (!options.place) {
    options.place = place_in(options.group);
  }
  return options;
}

} // namespace

Trainer::Trainer(TrainConfig config, TrainerOptions options)
    : config_(with_own_names(checked_flags(std::move(config)), options.own)),
      options_(with_world(std::move(options), group_world_)),
      setup_(set_up(
          config_to_set_up(),
          options_.own,
          *options_.fs,
          {.size = options_.world->size(),
           // NOLINTNEXTLINE(bugprone-unchecked-optional-access): with_world
           .place = *options_.place,
           .group = options_.group})),
      identity_(
          config_,
          setup_.devices,
          setup_.strategy->name(),
          setup_.train_samples),
      outputs_(
          {.fs = options_.fs,
           .world = options_.world,
           .log = options_.log,
           .observers = options_.observers}),
      loss_watch_(config_, *options_.world, [this] {
        return outputs_.settled_checkpoint();
      }) {
  config_.img_size = setup_.img_size;
  refuse_different_data(
      setup_.train_samples,
      setup_.test_samples,
      *options_.world);
  cursor_.best_by = options_.own.best_by();
  take_groups();
  list_state();
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
  state_.add(generator_part(setup_.devices, *options_.world));
  if (options_.group) {
    state_.add(bucket_part(*setup_.strategy));
  }
  state_.add(outputs_.part()).add(options_.parts);
  state_.add(
      {.key = "args",
       .save = [this](ValueBuilder&) { return to_args(config_); },
       .load = [this](const ckpt::Value& saved) { take_settings(saved); },
       .if_missing = IfMissing::kIgnore});
  state_.add(identity_.part());
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
  if (cursor_.best_by == BestBy::kAccuracy) {
    result_.best_acc1 = cursor_.best_acc1;
  }
  result_.best_loss = cursor_.best_loss;
  outputs_.end(
      {.epochs = cursor_.epoch,
       .best_acc1 = result_.best_acc1,
       .best_loss = result_.best_loss,
       .times = of_all_ranks(watch.times(), *options_.world),
       .was_stopped = result_.was_stopped});
  result_.folder = outputs_.folder();
  result_.epochs = cursor_.epoch;
  result_.steps = cursor_.step;
  result_.has_checkpoint = options_.world->any(outputs_.has_checkpoint());
  return result_;
}

std::optional<Score> Trainer::test() {
  if (setup_.test_data == nullptr) {
    return std::nullopt;
  }
  return evaluate(
      *setup_.strategy,
      *setup_.test_data,
      setup_.test_samples,
      *options_.world);
}

void Trainer::open_outputs() {
  Resumption* const from = checkpoint();
  TrainConfig written = config_;
  if (from != nullptr && cursor_.epoch >= config_.epochs) {
    // Nothing is trained: what ran before is what the folder goes on to say.
    if (const auto args = from->checkpoint.root.find("args")) {
      apply_args(written, *args);
    }
  }
  outputs_.open(written, options_.resumption);
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
  // Accelerators go on with the next step while the numbers of one are looked
  // at. Ranks exchange them: all at the same place.
  runs_ahead_ = !options_.world->any(setup_.devices.front().is_cpu());
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
  epoch_watch_ = {};
  step_watch_ = {};
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

std::optional<Batch> Trainer::next_batch() {
  try {
    return setup_.train_data->next();
  } catch (...) {
    if (options_.world->size() == 1) { // others would not exchange its numbers
      finish_step();
    }
    throw;
  }
}

// The step that all runs are made of: data in, observers out.
void Trainer::train_step(const Batch& batch, StepRecord record) {
  cursor_.lr = setup_.optimizer->param_groups().front().lr();
  setup_.optimizer->zero_grad();
  StepResult result = setup_.strategy->step(batch);
  setup_.strategy->update(*setup_.optimizer);
  setup_.schedule->after_step();
  cursor_.count(batch.size(), options_.world->size(), setup_.train_samples);
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
void Trainer::finish_step() {
  if (!running_) {
    return;
  }
  Running running = std::move(*running_);
  running_.reset();
  StepRecord& record = running.record;
  const BatchScore score = running.result.read();
  cursor_.sums.add(score);
  const SharedStep all = shared(score, options_.should_stop(), *options_.world);
  record.samples = all.batch.samples;
  const Score averages =
      all.batch.score(/*seconds=*/0, options_.own.has_classes());
  record.loss = static_cast<float>(averages.loss);
  record.top1 = averages.top1;
  record.top5 = averages.top5;
  record.seconds = step_watch_.seconds();
  record.epoch_seconds = epoch_watch_.seconds();
  step_watch_ = {};
  outputs_.step(record);
  result_.was_stopped = result_.was_stopped || all.shall_stop;
  if (!std::isfinite(record.loss)) {
    loss_watch_.bad_step(record);
  }
}

void Trainer::finish_epoch(std::int64_t samples) {
  const Score train =
      cursor_.sums.over(*options_.world)
          .score(epoch_watch_.seconds(), options_.own.has_classes());
  EpochRecord record{
      .epoch = cursor_.epoch + 1,
      .step = cursor_.step,
      .samples = cursor_.total_samples,
      .train = train,
      .test = test(),
      .best_by = cursor_.best_by,
      .lr = cursor_.lr,
      .images_per_second = static_cast<double>(samples) / train.seconds};
  record.times = of_all_ranks(epoch_watch_.times(), *options_.world);
  setup_.schedule->after_epoch();
  cursor_.finish_epoch();
  result_.test = record.test;
  record.is_best = cursor_.take_best(record);
  outputs_.epoch(record);
  if (const std::string text = loss_watch_.end_epoch(record); !text.empty()) {
    outputs_.log(LogLevel::kWarning, text);
  }
  save(record.is_best);
  result_.was_stopped =
      result_.was_stopped || options_.world->any(options_.should_stop());
}

void Trainer::save(bool is_best) {
  loss_watch_.check_state(setup_.model.module(), cursor_.step);
  outputs_.save(
      state_.save(),
      {.epoch = cursor_.epoch, .step = cursor_.step, .is_best = is_best});
  saved_ = Place{.epoch = cursor_.epoch, .step = cursor_.step};
  step_watch_ = {};
}

} // namespace lockstep::train
