// SPDX-License-Identifier: BSD-3-Clause
#include "tests/train/fault_run.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/full.h>

#include "lockstep/base/strings.h"
#include "lockstep/metrics/metric.h"
#include "lockstep/train/loop/cursor.h"
#include "lockstep/train/observers/line_observer.h"
#include "lockstep/train/observers/run_outputs.h"
#include "lockstep/train/records/record_row.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kEpochSamples = 128;

std::string in_run(std::string_view name) {
  return format("{}/{}", kRunFolder, name);
}

TrainConfig config_of(const FakeRun& run) {
  TrainConfig config;
  config.output = kRunFolder;
  config.resume = "auto";
  config.keep = run.keep;
  config.log_interval = 1;
  return config;
}

/// Writes down what a life says.
class Witness : public LogSink, public Observer {
 public:
  Witness(Life& life, const LiveOptions& options)
      : life_(life), options_(options) {}
  void write(LogLevel level, std::string_view message) override {
    if (level == LogLevel::kWarning) {
      life_.warnings.emplace_back(message);
    }
  }
  void on_checkpoint(const CheckpointRecord& record) override {
    life_.saved.push_back(record.step);
    options_.on_saved(life_);
  }

 private:
  Life& life_;
  const LiveOptions& options_;
};

/// The trainer's loop without a model.
class Loop {
 public:
  Loop(
      FileSystem& fs,
      const FakeRun& run,
      const LiveOptions& options,
      Life& life)
      : run_(run),
        life_(life),
        witness_(std::make_shared<Witness>(life, options)),
        outputs_(
            {.fs = &fs,
             .log = witness_.get(),
             .results_header = results_header(
                 infos_of(Metrics{accuracy()}),
                 infos_of(Metrics{accuracy()})),
             .observers = {witness_}}) {
    cursor_.best_by = {.column = "val_top1", .better = Better::kHigher};
    const auto constant = [](std::string key) {
      return StatePart{
          .key = std::move(key),
          .save = [](ValueBuilder&) { return ckpt::Value::dict({}); },
          .load = [](const ckpt::Value&) {}};
    };
    state_.add(cursor_parts(cursor_, /*group=*/{}));
    state_.add(
        {.key = "state_dict",
         .save =
             [this](ValueBuilder& builder) {
               return ckpt::Value::dict(
                   {{"weight", builder.tensor(at::full({200}, cursor_.step))}});
             },
         .load = [](const ckpt::Value&) {}});
    state_.add(outputs_.part());
    state_.add(constant("optimizer"));
    state_.add(constant("lockstep"));
  }

  void open(const std::optional<Resumption>& resumption) {
    if (resumption && !resumption->path.empty()) {
      state_.load(resumption->checkpoint.root);
    }
    outputs_.open(config_of(run_), resumption);
  }

  void train(std::int64_t until) {
    while (cursor_.step < std::min(until, run_.steps())) {
      step();
    }
  }

  void end() {
    outputs_.finish();
    outputs_.end({.epochs = cursor_.epoch, .best = cursor_.best});
  }

 private:
  void step() {
    cursor_.count_samples(64, 1, kEpochSamples);
    cursor_.count_step();
    cursor_.sums.add({.loss = 0.5F, .samples = 64});
    outputs_.step(
        {.epoch = cursor_.epoch + 1,
         .step = cursor_.step,
         .batch = cursor_.batch - 1,
         .batches = 2,
         .samples = 64,
         .loss = 1.0F / static_cast<float>(cursor_.step),
         .seconds = 0.5});
    if (cursor_.samples == kEpochSamples) {
      finish_epoch();
    } else if (run_.saves_inside_epochs) {
      save(/*is_best=*/false);
    }
  }

  void finish_epoch() {
    const double top1 = run_.accuracy_of(cursor_.step);
    const EpochRecord record{
        .epoch = cursor_.epoch + 1,
        .step = cursor_.step,
        .samples = cursor_.total_samples,
        .train = {.seconds = 1.0},
        .test = Score{.metrics = {{"top1", top1}}}};
    cursor_.finish_epoch();
    const bool is_best = cursor_.take_best(record);
    outputs_.epoch(record);
    save(is_best);
  }

  void save(bool is_best) {
    life_.tried = cursor_.step;
    ++life_.tries;
    outputs_.save(
        state_.save(),
        {.epoch = cursor_.epoch + 1, .step = cursor_.step, .is_best = is_best});
    try {
      outputs_.finish(); // waits
    } catch (const Exception&) {
      // Said in a warning. The trainer asks at the end.
    }
  }

  const FakeRun& run_;
  Life& life_;
  std::shared_ptr<Witness> witness_;
  RunOutputs outputs_;
  Cursor cursor_;
  RunState state_;
};

std::string first_lines(std::string_view text, std::int64_t count) {
  std::size_t end = 0;
  for (; count > 0; --count) {
    end = text.find('\n', end) + 1;
  }
  return std::string(text.substr(0, end));
}

std::int64_t count_rows(std::string_view log) {
  const auto lines = split(log, '\n');
  return std::ranges::count_if(lines, is_observed_line);
}

} // namespace

Life live(FileSystem& fs, const FakeRun& run, const LiveOptions& options) {
  Life life;
  try {
    Loop loop(fs, run, options, life);
    loop.open(find_resumption(fs, config_of(run)));
    loop.train(options.until.value_or(run.steps()));
    if (!options.until) {
      loop.end();
    }
  } catch (const Exception& error) {
    life.error = error.error();
  }
  return life;
}

Judge::Judge(FakeRun run) : run_(std::move(run)) {
  MemoryFs fs;
  FakeRun keeping = run_;
  keeping.keep = run_.steps();
  const Life life = live(fs, keeping);
  if (life.error || !life.warnings.empty()) {
    raise(life.error.value_or(Error{.message = "warnings without a fault"}));
  }
  for (const std::string& name : fs.list(kRunFolder).value()) {
    expected_[name] = read_text(fs, in_run(name)).value();
  }
}

std::vector<std::string>
Judge::judge(FileSystem& fs, const Life& life, bool to_the_end) {
  broken_.clear();
  bury(fs);
  try {
    found_ = find_resumption(fs, config_of(run_));
    check_found(fs, life);
    const Life opened = live(fs, run_, {.until = 0});
    check_life(opened);
    check_links(fs, life);
    check_rows(fs, found_step());
    if (to_the_end) {
      check_life(live(fs, run_));
      check_end(fs);
    }
  } catch (const Exception& error) {
    report("throws " + lockstep::to_string(error.error()));
  }
  return std::exchange(broken_, {});
}

std::int64_t Judge::found_step() const {
  return found_ && !found_->path.empty()
             ? checkpoint_step(base_name(found_->path)).value_or(-1)
             : 0;
}

void Judge::check_life(const Life& life) {
  if (life.error) {
    report("cannot go on: " + lockstep::to_string(*life.error));
  }
  for (const std::string& warning : life.warnings) {
    if (!warning.starts_with(kLeftFolder)) {
      report("warns: " + warning);
    }
  }
}

void Judge::check_found(FileSystem& fs, const Life& life) {
  const std::int64_t step = found_step();
  if (step < life.newest() || step > life.tried) {
    report(format(
        "finds checkpoint {}, {} was saved, {} tried",
        step,
        life.newest(),
        life.tried));
  }
  if (step == 0) {
    return;
  }
  const std::string name = base_name(found_->path);
  if (read_text(fs, found_->path).value() != expected_[name]) {
    report(name + " has other bytes");
  }
  for (const std::string& warning : found_->warnings) {
    report("warns: " + warning);
  }
}

void Judge::check_links(FileSystem& fs, const Life& life) {
  const auto names = fs.list(kRunFolder).value();
  double best = 0.0;
  if (std::ranges::find(names, kBestFile) != names.end()) {
    const auto text = read_text(fs, in_run(kBestFile));
    const std::string target = base_name(fs.resolve(in_run(kBestFile)).value());
    if (!text || *text != expected_[target]) {
      report(format("{} leads to {}, which is not whole", kBestFile, target));
    }
    best = run_.accuracy_of(checkpoint_step(target).value_or(0));
  }
  for (const std::int64_t step : life.saved) {
    if (run_.accuracy_of(step) > best) {
      report(format("{} is {}, {} was better", kBestFile, best, step));
    }
  }
  const ckpt::Value* claim =
      found_ ? found_->checkpoint.root.find("best_acc1") : nullptr;
  if (claim != nullptr && claim->number().value() > best) {
    report(format(
        "{} claims {}, {} reaches {}",
        found_->path,
        *claim->number(),
        kBestFile,
        best));
  }
}

void Judge::check_rows(FileSystem& fs, std::int64_t step) {
  const std::int64_t epochs = step / 2;
  const auto expect = [&](const std::string& name, std::int64_t lines) {
    if (read_text(fs, in_run(name)).value() !=
        first_lines(expected_[name], lines)) {
      report(format("{} is not that of step {}", name, step));
    }
  };
  expect("steps.csv", 1 + step);
  expect("results.csv", 1 + epochs);
  expect("metrics.jsonl", step + epochs);
  if (count_rows(read_text(fs, in_run("log.txt")).value()) !=
      step + 2 * epochs) {
    report(format("log.txt is not that of step {}", step));
  }
}

void Judge::check_end(FileSystem& fs) {
  for (const std::string_view name : {kLatestFile, kBestFile}) {
    const auto text = read_text(fs, in_run(name));
    if (!text || *text != expected_[std::string(name)]) {
      report(format("in the end, {} is another one", name));
    }
  }
  check_rows(fs, run_.steps());
  for (const std::string& name : fs.list(kRunFolder).value()) {
    if (!expected_.contains(name)) {
      report("in the end, there is " + name);
    }
  }
}

void Judge::report(std::string what) {
  broken_.push_back(std::move(what));
}

MemoryFs copy_of(const MemoryFs& fs) {
  return fs.after_power_loss(
      {.data = PowerLoss::Data::kKept, .keep_names = true});
}

std::vector<std::string> temporaries(FileSystem& fs) {
  const auto all = fs.list(kRunFolder);
  auto names = all ? *all : std::vector<std::string>();
  std::erase_if(names, [](const std::string& name) {
    return name.find(".tmp.") == std::string::npos;
  });
  return names;
}

void bury(FileSystem& fs) {
  const std::string ours = format(".tmp.{}.", std::int64_t{::getpid()});
  // Higher than the numbers of processes go.
  const std::string nobody = ".tmp.2147483647.";
  for (std::string name : temporaries(fs)) {
    const std::string old = in_run(name);
    name.replace(name.find(ours), ours.size(), nobody);
    fs.rename(old, in_run(name)).value();
  }
}

} // namespace lockstep::train
