// SPDX-License-Identifier: BSD-3-Clause
//
// One step of a run: its batches, the update and the hooks around it.
#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/atomic_file.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/augment.h"
#include "lockstep/tensor/internal/trace_spans.h"
#include "lockstep/train/loop/training_run.h"
#include "lockstep/train/sample_order.h"
#include "lockstep/train/step/loss_place.h"

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
      own.weight,
      static_cast<double>(own.samples),
      shall_stop ? 1.0 : 0.0};
  const auto before_metrics = std::ssize(sums);
  sums.insert(sums.end(), own.sums.begin(), own.sums.end());
  group.sum(sums);
  SharedStep all{.shall_stop = sums[3] > 0};
  all.batch.loss = sums[0];
  all.batch.weight = sums[1];
  all.batch.samples = static_cast<std::int64_t>(sums[2]);
  all.batch.sums.assign(sums.begin() + before_metrics, sums.end());
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
  const TraceSpan span("data");
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

// How much this rank's batches count in the averages over ranks: exactly 1 each
// where all count as much.
std::vector<double> TrainingRun::shares_of(
    const std::vector<Batch>& batches) const {
  const auto& divisor = task().divisor;
  std::vector<double> shares(batches.size(), 1.0);
  if (!divisor || group_.size() == 1) {
    return shares;
  }
  std::ranges::transform(batches, shares.begin(), [&](const Batch& batch) {
    return batch.targets.defined() ? divisor(batch.targets)
                                   : static_cast<double>(batch.size());
  });
  std::vector<double> sums = shares;
  group_.sum(sums);
  std::ranges::transform(
      shares,
      sums,
      shares.begin(),
      [&](double own, double sum) {
        return sum > 0 ? own * group_.size() / sum : 1.0;
      });
  return shares;
}

// "in epoch 1, step 3 of 12, samples 257 to 384 of the epoch, from 'a.png' on".
std::string TrainingRun::place_of(const Batch& batch, const Running& running)
    const {
  std::int64_t first = cursor_.samples;
  for (const Batch& before : running.batches) { // of the same step
    if (&before == &batch) {
      break;
    }
    first += before.size() * group_.size();
  }
  const auto order = sample_order(
      setup_.train_samples,
      {.seed = config_.seed,
       .epoch = cursor_.epoch,
       .consumed = first,
       .weights = setup_.sample_weights},
      group_);
  return format(
      "in epoch {}, step {} of {}, samples {} to {} of the epoch{}",
      cursor_.epoch + 1,
      cursor_.batch + 1,
      running.record.batches,
      first + 1,
      std::min(first + batch.size() * group_.size(), setup_.train_samples),
      order.empty()
          ? std::string()
          : format(
                ", from '{}' on",
                escape(setup_.train_set->sample_name(order.front()))));
}

// Forward and backward of one batch, in as many parts as it goes.
void TrainingRun::train_batch(
    Running& running,
    const Batch& batch,
    double weight,
    bool is_last) {
  const std::vector<Batch> parts = micro_batches_.parts_of(batch);
  for (const Batch& part : parts) {
    // Ranks that may have to begin again exchange nothing before the end.
    const bool exchanges =
        is_last && &part == &parts.back() && !micro_batches_.is_on();
    // Between the batches of a step nobody writes.
    const bool is_counted =
        !running.results.empty() ||
        (!setup_.has_own_code && setup_.strategy->optimizer().counts_writes());
    try {
      running.results.push_back(setup_.strategy->step(
          part,
          {.weight = weight * micro_batches_.share(part, batch),
           .exchanges = exchanges,
           .weights_are_counted = is_counted}));
    } catch (const Exception& error) {
      if (error.error().detail != kLossFailed) {
        throw;
      }
      raise_with_place(error, place_of(batch, running));
    }
  }
}

// Of a step: at the end of an epoch they may be fewer.
void TrainingRun::read_batches(Running& running) {
  const Stopwatch watch;
  const std::int64_t left =
      setup_.train_data->batches() - setup_.train_data->position();
  const std::int64_t count = std::min(setup_.accumulate, left);
  for (std::int64_t part = 0; part < count; ++part) {
    running.batches.push_back(next_batch(part));
  }
  const double waited = watch.seconds();
  running.record.data_seconds += waited;
  phases_.data += waited;
}

// Forward and backward of a step's batches.
void TrainingRun::train_batches(Running& running) {
  micro_batches_.begin_step();
  double weight = 1.0 / static_cast<double>(running.batches.size());
  for (const auto& hook : setup_.hooks) {
    weight *= hook->loss_scale();
  }
  std::vector<double> weights = shares_of(running.batches);
  for (double& share : weights) {
    share *= weight;
  }
  std::exception_ptr error;
  do {
    error = nullptr;
    try {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        train_batch(
            running,
            running.batches[i],
            weights[i],
            i + 1 == weights.size());
      }
    } catch (...) {
      error = std::current_exception();
    }
  } while (repeats_step(running, error));
  if (micro_batches_.is_on()) {
    setup_.strategy->exchange();
  }
}

// What did not fit into memory goes again, in smaller parts.
bool TrainingRun::repeats_step(
    Running& running,
    const std::exception_ptr& error) {
  const bool can_split = std::ranges::all_of(
      running.batches,
      [](const Batch& batch) { return batch.structure.is_empty(); });
  if (!micro_batches_.repeats(
          error,
          can_split ? running.batches.front().size() : 1)) {
    return false;
  }
  running.results.clear();
  finish_step(); // the memory of the step before it
  outputs_.log(
      LogLevel::kWarning,
      format(
          "step {} did not fit into memory: batches go in {} parts from here "
          "on (--auto-batch)",
          cursor_.step + 1,
          micro_batches_.count()));
  return true;
}

// The update with the hooks around it.
void TrainingRun::update() {
  const Stopwatch watch;
  bool shall_skip = false;
  {
    const TraceSpan span("hooks");
    for (const auto& hook : setup_.hooks) {
      hook->before_update(scope());
    }
    for (const auto& hook : setup_.hooks) {
      shall_skip = hook->skips_update() || shall_skip;
    }
  }
  if (!shall_skip) {
    const TraceSpan span("optimizer");
    setup_.strategy->update();
  }
  {
    const TraceSpan span("hooks");
    for (const auto& hook : setup_.hooks) {
      hook->after_update(scope());
    }
    setup_.schedule->after_step();
  }
  phases_.update += watch.seconds();
}

// The step that all runs are made of: data in, observers out.
void TrainingRun::train_step(const StepRecord& begun) {
  const TraceSpan span = TraceSpan::of_step(cursor_.step + 1);
  Strategy& strategy = *setup_.strategy;
  Running running{.record = begun};
  cursor_.lr = strategy.optimizer().param_groups().front().lr();
  strategy.optimizer().zero_grad();
  read_batches(running);
  train_batches(running);
  for (const Batch& batch : running.batches) {
    cursor_.count_samples(batch.size(), group_.size(), setup_.train_samples);
  }
  update();
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
  const Stopwatch reading;
  const SharedStep all = [&] {
    const TraceSpan span("read");
    Scoring score(task().train_metrics());
    for (const StepResult& result : running.results) {
      score.add(result.read());
    }
    cursor_.sums.add(score);
    return shared(score, should_stop_(), group_);
  }();
  phases_.read += reading.seconds();
  record.samples = all.batch.samples;
  Score averages = all.batch.score(task().train_metrics(), /*seconds=*/0);
  record.loss = static_cast<float>(averages.loss);
  record.metrics = std::move(averages.metrics);
  record.seconds = step_watch_.seconds();
  record.epoch_seconds = epoch_watch_.seconds();
  step_watch_ = {};
  {
    const TraceSpan told("observers");
    outputs_.step(record);
  }
  result_.was_stopped = result_.was_stopped || all.shall_stop;
  if (!std::isfinite(record.loss)) {
    loss_watch_.bad_step(record);
  }
}

// Of all ranks, which all call it.
void TrainingRun::write_profile() {
  finish_step();
  // A checkpoint that is being written is part of it.
  static_cast<void>(outputs_.settled_checkpoint());
  const StepProfile::Trace trace = profile_.take();
  if (!outputs_.writes()) {
    step_watch_ = {};
    return;
  }
  if (trace.missing_ranks > 0 && !trace.text.empty()) {
    outputs_.log(
        LogLevel::kWarning,
        format(
            "{} lacks {}",
            kTraceFile,
            counted(trace.missing_ranks, "rank")));
  }
  if (trace.text.empty()) {
    outputs_.log(
        LogLevel::kWarning,
        trace.steps == 0
            ? format(
                  "no {}: the run has no step after the first {}",
                  kTraceFile,
                  StepProfile::kWarmUp)
            : format("no {}: another one is being recorded", kTraceFile));
  } else {
    const Status done = write_file_atomically(
        fs_,
        format("{}/{}", outputs_.folder(), kTraceFile),
        trace.text,
        {.durable = false});
    outputs_.log(
        done ? LogLevel::kInfo : LogLevel::kWarning,
        done ? format(
                   "{} shows {}: open it in ui.perfetto.dev",
                   kTraceFile,
                   counted(trace.steps, "step"))
             : format("no {}: {}", kTraceFile, to_string(done.error())));
  }
  step_watch_ = {};
}

} // namespace lockstep::train
