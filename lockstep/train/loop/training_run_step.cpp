// SPDX-License-Identifier: BSD-3-Clause
//
// One step of a run: its batches, the update and the hooks around it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/data/augment.h"
#include "lockstep/train/loop/training_run.h"

namespace lockstep::train {
namespace {

// A step of all ranks together.
struct SharedStep {
  Scoring batch = {};
  /// Some rank was asked to stop.
  bool shall_stop = false;
};

// One exchange for all that the ranks tell each other in a step.
SharedStep
shared(const Scoring& own, bool shall_stop, const dist::ProcessGroup& group) {
  std::vector<double> sums{
      own.loss,
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

// Depends on the place in the run alone, so it goes on with the same bits.
Batch TrainingRun::mixed(const Batch& batch, std::int64_t part) const {
  const std::int64_t number = cursor_.batch * setup_.accumulate + part;
  return mix_batch(
      batch,
      {.alpha = config_.mixup_alpha,
       .num_classes = setup_.train_set->num_classes(),
       .seed = config_.seed,
       .epoch = cursor_.epoch,
       .batch = number * group_.size() + group_.rank()},
      config_.cutmix_alpha);
}

Batch TrainingRun::next_batch(std::int64_t part) {
  try {
    const auto batch = setup_.train_data->next();
    // The order ends with the epoch's samples.
    LOCKSTEP_CHECK(batch.has_value());
    return mixed(*batch, part);
  } catch (...) {
    if (group_.size() == 1) { // others would not exchange its numbers
      finish_step();
    }
    throw;
  }
}

// Forward and backward of a step's batches: at the end of an epoch they may be
// fewer.
void TrainingRun::train_batches(Running& running) {
  const std::int64_t left =
      setup_.train_data->batches() - setup_.train_data->position();
  const std::int64_t count = std::min(setup_.accumulate, left);
  for (std::int64_t part = 0; part < count; ++part) {
    const Stopwatch watch;
    const Batch& batch = running.batches.emplace_back(next_batch(part));
    running.record.data_seconds += watch.seconds();
    running.results.push_back(setup_.strategy->step(
        batch,
        {.weight = 1.0 / static_cast<double>(count),
         .exchanges = part + 1 == count}));
    cursor_.count_samples(batch.size(), group_.size(), setup_.train_samples);
  }
}

// The step that all runs are made of: data in, observers out.
void TrainingRun::train_step(const StepRecord& begun) {
  Strategy& strategy = *setup_.strategy;
  Running running{.record = begun};
  cursor_.lr = strategy.optimizer().param_groups().front().lr();
  strategy.optimizer().zero_grad();
  train_batches(running);
  for (const auto& hook : setup_.hooks) {
    hook->before_update(scope());
  }
  strategy.update();
  for (const auto& hook : setup_.hooks) {
    hook->after_update(scope());
  }
  setup_.schedule->after_step();
  cursor_.count_step();
  StepRecord& record = running.record;
  record.epoch = cursor_.epoch + 1;
  record.step = cursor_.step;
  record.batch = cursor_.batch - 1;
  record.lr = cursor_.lr;
  finish_step();
  running_ = std::move(running);
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
  Scoring score(task().train_metrics());
  for (const StepResult& result : running.results) {
    score.add(result.read());
  }
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

} // namespace lockstep::train
