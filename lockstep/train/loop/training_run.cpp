// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/training_run.h"

#include <ranges>
#include <utility>

#include "lockstep/base/internal/caught.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/trace_spans.h"
#include "lockstep/train/checkpoints/config_file.h"
#include "lockstep/train/checkpoints/trained_data.h"
#include "lockstep/train/loop/rank_settings.h"
#include "lockstep/train/records/record_row.h"
#include "lockstep/train/sample_order.h"
#include "lockstep/train/state_parts.h"
#include "lockstep/train/step/evaluate.h"
#include "lockstep/train/step/memory_use.h"
#include "lockstep/train/step/named_model.h"

namespace lockstep::train {
namespace {

// 0 if it is not known, and for a test alone, which compares nothing.
std::uint64_t digest_of(const Dataset* data, const TrainConfig& config) {
  return data == nullptr || config.test_only ? 0 : data->digest();
}

// What of the hooks decides the bits of a run.
std::vector<std::string> texts_of(const StepHooks& hooks) {
  std::vector<std::string> texts;
  for (const auto& hook : hooks) {
    if (hook->decides_bits()) {
      texts.push_back(hook->text());
    }
  }
  return texts;
}

// A test as the hooks want it; the last one that changed the module puts it
// back first.
class HookedTest {
 public:
  HookedTest(const StepHooks& hooks, const StepScope& scope)
      : hooks_(hooks), scope_(scope) {
    for (const auto& hook : hooks_) {
      hook->begin_test(scope_);
    }
  }
  ~HookedTest() {
    for (const auto& hook : std::views::reverse(hooks_)) {
      hook->end_test(scope_);
    }
  }
  HookedTest(const HookedTest&) = delete;
  HookedTest& operator=(const HookedTest&) = delete;

 private:
  const StepHooks& hooks_;
  StepScope scope_;
};

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
      micro_batches_(setup_, config_.auto_batch),
      identity_(
          config_,
          setup_.devices,
          setup_.strategy->name(),
          {.ranks = group_.size(),
           .train_samples = setup_.train_samples,
           .train_digest = digest_of(setup_.train_set.get(), config_),
           .test_digest = digest_of(own_.test_data.get(), config_),
           .hooks = texts_of(setup_.hooks)}),
      outputs_(
          {.fs = options.fs,
           .group = options.group,
           .log = options.log,
           .results_header = results_header(
               infos_of(task().train_metrics()),
               infos_of(task().metrics)),
           .observers = options.observers,
           .sources = options.sources}),
      loss_watch_(config_, group_, setup_.model.module(), [this] {
        return outputs_.settled_checkpoint();
      }) {
  refuse_different_data(
      {.train_samples = setup_.train_samples,
       .test_samples = setup_.test_samples,
       .class_names = setup_.train_set->class_names(),
       .digests = identity_.digests()},
      group_);
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
  state_.add(program_parts(setup_.model.module()));
  state_.add(model_part(setup_.model.module()));
  state_.add(optimizer_part(setup_.strategy->optimizer()));
  state_.add(scheduler_part(setup_.schedule->scheduler()));
  if (Scheduler* const warmup = setup_.schedule->warmup()) {
    state_.add(scheduler_part(*warmup, std::string(kWarmupKey)));
  }
  if (Scheduler* const swa = setup_.schedule->swa()) {
    state_.add(scheduler_part(*swa, std::string(kSwaKey)));
  }
  state_.add(generator_part(setup_.devices, group_));
  if (group_) {
    state_.add(bucket_part(*setup_.strategy));
  }
  for (const auto& hook : setup_.hooks) {
    state_.add(hook->parts());
  }
  state_.add(micro_batches_.state());
  state_.add(outputs_.part()).add(parts);
  state_.add(
      {.key = "args",
       .save = [this](ValueBuilder&) { return to_args(config_); },
       .load = [](const ckpt::Value&) {}, // `decide` has read them
       .if_missing = IfMissing::kIgnore});
  state_.add(identity_.part());
}

namespace {

// Tells the hooks when it goes; the last one first.
class HookedRun {
 public:
  explicit HookedRun(const StepHooks& hooks) : hooks_(hooks) {}
  ~HookedRun() {
    for (const auto& hook : std::views::reverse(hooks_)) {
      hook->end_run();
    }
  }
  HookedRun(const HookedRun&) = delete;
  HookedRun& operator=(const HookedRun&) = delete;

 private:
  const StepHooks& hooks_;
};

} // namespace

TrainResult TrainingRun::run() {
  if (std::exchange(has_run_, true)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train",
         .message = "a Trainer runs once",
         .hint = "make another one; .resume goes on with the run"});
  }
  const HookedRun hooked(setup_.hooks);
  if (config_.test_only) {
    log(setup_.lines);
    result_.test = test();
    return result_;
  }
  try {
    return run_to_end();
  } catch (const c10::Error& error) { // whose text has a backtrace
    outputs_.fail({.op = "train", .message = error.what_without_backtrace()});
    throw;
  } catch (const std::exception& error) {
    outputs_.fail(error_of(error, "train"));
    throw;
  }
}

TrainResult TrainingRun::run_to_end() {
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
       .was_stopped = result_.was_stopped && cursor_.epoch < config_.epochs,
       .why = why_done_});
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
  const TraceSpan span("test");
  StepScope done = scope();
  done.step = cursor_.step;
  const HookedTest hooked(setup_.hooks, done);
  const std::vector<std::string> names =
      trained_data(*setup_.train_set, config_).names();
  Score score = evaluate(
      *setup_.strategy,
      *setup_.test_data,
      setup_.test_samples,
      group_,
      names);
  if (test_samples_) {
    shown_ = test_samples_->show(*setup_.strategy);
    if (const std::string text = test_samples_->take_failure(); !text.empty()) {
      outputs_.log(
          LogLevel::kWarning,
          format("{} shows no samples of the test: {}", kPageFile, text));
    }
  }
  return score;
}

StepScope TrainingRun::scope() const {
  return {
      .module = setup_.model.module(),
      .optimizer = setup_.strategy->optimizer(),
      .group = group_,
      .epoch = cursor_.epoch + 1,
      .step = cursor_.step + 1};
}

// All ranks call it: they leave the loop together.
bool TrainingRun::is_done() {
  if (cursor_.epoch >= config_.epochs) {
    return true;
  }
  std::string why;
  for (const auto& hook : setup_.hooks) {
    why = why.empty() ? hook->is_done() : why;
  }
  if (!group_.any(!why.empty())) {
    return false;
  }
  why_done_ = why.empty() ? "another rank ends it" : why;
  outputs_.log(
      LogLevel::kInfo,
      format("the run ends after epoch {}: {}", cursor_.epoch, why_done_));
  return true;
}

void TrainingRun::open_outputs() {
  outputs_.open(written_, from_);
  if (outputs_.writes() && setup_.test_set != nullptr) {
    test_samples_.emplace(
        setup_.test_set,
        setup_.test_samples,
        setup_.test_data->options().batch_size,
        trained_data(*setup_.train_set, config_));
  }
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
  while (!result_.was_stopped && !is_done()) {
    train_epoch();
  }
  if (profile_.is_wanted()) {
    write_profile();
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
  phases_ = {};
  static_cast<void>(setup_.strategy->take_seconds());
  const std::int64_t samples_before = cursor_.samples;
  setup_.train_data->start_epoch(
      sample_order(
          setup_.train_samples,
          {.seed = config_.seed,
           .epoch = cursor_.epoch,
           .consumed = cursor_.samples,
           .weights = setup_.sample_weights},
          group_),
      cursor_.epoch);
  const std::int64_t steps =
      cursor_.batch + setup_.steps_in(setup_.train_data->batches());
  for (const auto& hook : setup_.hooks) {
    hook->begin_epoch(scope());
  }
  while (!is_epoch_done() && !result_.was_stopped) {
    profile_.begin_step();
    train_step({.batches = steps});
    profile_.end_step();
    if (profile_.is_due()) {
      write_profile();
    }
  }
  finish_step();
  if (!result_.was_stopped) {
    finish_epoch(cursor_.samples - samples_before);
  }
}

void TrainingRun::finish_epoch(std::int64_t samples) {
  const Score train = cursor_.sums.over(group_).score(
      task().train_metrics(),
      epoch_watch_.seconds());
  StepScope done = scope();
  done.step = cursor_.step;
  for (const auto& hook : setup_.hooks) {
    hook->end_steps(done);
  }
  EpochRecord record{
      .epoch = cursor_.epoch + 1,
      .step = cursor_.step,
      .samples = cursor_.total_samples,
      .train = train,
      .test = test(),
      .best_by = cursor_.best_by,
      .lr = cursor_.lr,
      .images_per_second = static_cast<double>(samples) / train.seconds};
  phases_.test = epoch_watch_.seconds() - train.seconds;
  add_costs(record);
  setup_.schedule->after_epoch(
      record.epoch,
      record.value(cursor_.best_by.column));
  cursor_.finish_epoch();
  result_.test = record.test;
  record.is_best = cursor_.take_best(record);
  for (const auto& hook : setup_.hooks) {
    hook->end_epoch(record);
  }
  outputs_.epoch(record);
  if (const std::string text = loss_watch_.end_epoch(record); !text.empty()) {
    outputs_.log(LogLevel::kWarning, text);
  }
  save(record.is_best);
  result_.was_stopped = result_.was_stopped || group_.any(should_stop_());
}

void TrainingRun::add_costs(EpochRecord& record) {
  const Strategy::PassSeconds passes = setup_.strategy->take_seconds();
  phases_.forward = passes.forward;
  phases_.backward = passes.backward;
  record.phases = phases_;
  record.shown = std::exchange(shown_, {});
  record.rank_bytes = peak_of_ranks(group_);
  record.device_bytes = peak_of_devices(setup_.devices);
  record.times = of_all_ranks(epoch_watch_.times(), group_);
}

void TrainingRun::save(bool is_best) {
  const Stopwatch watch;
  const TraceSpan span("checkpoint");
  loss_watch_.check_state(setup_.model.module(), cursor_.step);
  outputs_.save(
      state_.save(),
      {.epoch = cursor_.epoch, .step = cursor_.step, .is_best = is_best});
  saved_ = Place{.epoch = cursor_.epoch, .step = cursor_.step};
  phases_.save += watch.seconds();
  step_watch_ = {};
}

} // namespace lockstep::train
