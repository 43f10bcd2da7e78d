// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>

#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/data/distributed_sampler.h"
#include "lockstep/data/registry.h"
#include "lockstep/device/device_list.h"
#include "lockstep/kernels/install.h"
#include "lockstep/models/registry.h"
#include "lockstep/tensor/load_weights.h"
#include "lockstep/tensor/memory_format.h"
#include "lockstep/train/csv_sink.h"
#include "lockstep/train/line_sink.h"
#include "lockstep/train/log_file.h"

namespace lockstep::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::int64_t limited(std::int64_t size, std::int64_t maximum) {
  return maximum == 0 ? size : std::min(size, maximum);
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

TransformOptions transform_of(const TrainConfig& config) {
  if (config.augment == "none") {
    return {};
  }
  return {.crop_padding = 4, .horizontal_flip = true, .seed = config.seed};
}

double percent(std::int64_t part, std::int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::int64_t parameter_count(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters()) {
    count += parameter.numel();
  }
  return count;
}

} // namespace

Trainer::Trainer(TrainConfig config, TrainerOptions options)
    : config_(std::move(config)), options_(std::move(options)) {
  const std::string spec = !config_.devices.empty()   ? config_.devices
                           : device_count("cuda") > 0 ? "cuda"
                                                      : "cpu";
  devices_ = parse_devices(spec);
  open_data();
  build();
  resume();
}

Trainer::~Trainer() = default;

void Trainer::open_data() {
  const std::int64_t test_batch =
      config_.val_batch_size > 0 ? config_.val_batch_size : config_.batch_size;
  const auto train = open_dataset(
      config_.data,
      config_.data_dir,
      /*train=*/true,
      transform_of(config_));
  const auto test =
      open_dataset(config_.data, config_.data_dir, /*train=*/false);
  train_samples_ = limited(train->size(), config_.max_train_samples);
  test_samples_ = limited(test->size(), config_.max_eval_samples);
  train_data_ = std::make_unique<Loader>(
      train,
      LoaderOptions{
          .batch_size = config_.batch_size,
          .workers = config_.workers});
  test_data_ = std::make_unique<Loader>(
      test,
      LoaderOptions{.batch_size = test_batch, .workers = config_.workers});
}

void Trainer::build() {
  // Only the kernels of this many threads give the bits of a Python run.
  if (config_.threads > 0) {
    at::set_num_threads(static_cast<int>(config_.threads));
  }
  if (config_.kernels == "lockstep") {
    kernels::install();
  }
  // Before the model: its initial weights are the generator's first numbers.
  at::manual_seed(static_cast<std::uint64_t>(config_.seed));
  const Dataset& data = train_data_->dataset();
  model_ = make_model(
      config_.model,
      {.num_classes = data.num_classes(),
       .in_channels = data.sample_shape().front()});
  if (!config_.initial_checkpoint.empty()) {
    load_weights(*model_, config_.initial_checkpoint, {}, *options_.fs);
  }
  if (config_.channels_last) {
    // Convolutions take the layout of their weights; images may stay as is.
    to_memory_format(*model_, at::MemoryFormat::ChannelsLast);
  }
  strategy_ = make_strategy(config_, model_, devices_);
  optimizer_ = build_optimizer(config_, *model_);
  optimizer_->use_workers(strategy_->workers());
  schedule_ = std::make_unique<Schedule>(
      config_,
      *optimizer_,
      ceil_div(train_samples_, config_.batch_size));
}

void Trainer::resume() {
  if (config_.resume.empty()) {
    return;
  }
  const auto path = find_checkpoint(*options_.fs, config_);
  if (!path) {
    return;
  }
  const Resumed checkpoint = open_checkpoint(*options_.fs, *path);
  TrainState state{*model_, *optimizer_, schedule_->scheduler()};
  restore(checkpoint, state);
  resumed_from_ = *path;
  result_.epochs = state.epoch;
  result_.best_acc1 = state.best_acc1;
}

void Trainer::open_run_folder() {
  const std::string home =
      resumed_from_.empty() ? "" : parent_directory(resumed_from_);
  if (!home.empty() && (config_.output.empty() || config_.output == home)) {
    folder_ = continue_run_folder(*options_.fs, home, config_);
    result_.has_checkpoint = true;
  } else {
    folder_ = create_run_folder(*options_.fs, config_);
  }
  result_.folder = folder_.path;
  log_file_ = std::make_unique<LogFile>(*options_.fs, folder_.file("log.txt"));
  options_.sinks.push_back(
      std::make_shared<LineSink>(*log_file_, config_.log_interval));
  options_.sinks.push_back(std::make_shared<CsvSink>(
      *options_.fs,
      folder_,
      result_.epochs,
      config_.log_interval));
}

void Trainer::describe() const {
  log(LogLevel::kInfo,
      format(
          "model {} with {} parameters on {} ({}), {} threads, kernels {}; "
          "batch {}{}; "
          "lockstep {}",
          config_.model,
          with_commas(static_cast<std::uint64_t>(parameter_count(*model_))),
          to_string(devices_),
          strategy_->name(),
          at::get_num_threads(),
          config_.kernels,
          config_.batch_size,
          devices_.size() > 1 ? format(" over {} devices", devices_.size())
                              : std::string(),
          kVersion));
  log(LogLevel::kInfo,
      format(
          "data {}: {} training and {} test samples; run folder {}{}",
          config_.data,
          train_samples_,
          test_samples_,
          folder_.path,
          folder_.taken.empty()
              ? std::string()
              : format(" ({} holds another run)", folder_.taken)));
  if (!resumed_from_.empty()) {
    log(LogLevel::kInfo,
        format("resumed {} at epoch {}", resumed_from_, result_.epochs));
  } else if (!config_.resume.empty()) {
    log(LogLevel::kInfo, "nothing to resume: a new run begins");
  }
}

TrainResult Trainer::run() {
  if (config_.test_only) {
    const auto threads = strategy_->share_threads();
    result_.test = evaluate(*strategy_, *test_data_, test_samples_);
    return result_;
  }
  open_run_folder();
  describe();
  const auto start = Clock::now();
  train_all();
  log(LogLevel::kInfo,
      format("Training time {}", human_seconds(seconds_since(start))));
  return result_;
}

void Trainer::train_all() {
  const auto threads = strategy_->share_threads();
  while (result_.epochs < config_.epochs && !result_.was_stopped) {
    const Score train = train_epoch();
    if (!result_.was_stopped) {
      finish_epoch(train);
    }
  }
}

Score Trainer::train_epoch() {
  const auto start = Clock::now();
  strategy_->train(true);
  DistributedSampler order(train_samples_, {.seed = config_.seed});
  order.set_epoch(result_.epochs);
  train_data_->start_epoch(order.indices(), result_.epochs);
  Scoring scoring;
  auto step_start = Clock::now();
  while (const auto batch = train_data_->next()) {
    const double data_seconds = seconds_since(step_start);
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the condition checks
    StepRecord record = train_step(*batch, scoring);
    record.data_seconds = data_seconds;
    record.seconds = seconds_since(step_start);
    step_start = Clock::now();
    for (const auto& sink : options_.sinks) {
      sink->on_step(record);
    }
    if (options_.should_stop()) {
      result_.was_stopped = true;
      break;
    }
  }
  return scoring.score(seconds_since(start));
}

StepRecord Trainer::train_step(const Batch& batch, Scoring& scoring) {
  last_lr_ = optimizer_->param_groups().front().lr();
  const at::Tensor outputs = strategy_->forward(batch.images);
  const at::Tensor targets = batch.targets.to(outputs.device());
  const at::Tensor loss = at::cross_entropy_loss(
      outputs,
      targets,
      /*weight=*/{},
      at::Reduction::Mean,
      /*ignore_index=*/-100,
      config_.label_smoothing);
  optimizer_->zero_grad();
  loss.backward();
  optimizer_->step();
  schedule_->after_step();

  const auto value = loss.item<float>();
  const Hits hits = count_hits(outputs, targets);
  scoring.add(value, hits, batch.size());
  const std::int64_t position = train_data_->position();
  return {
      .epoch = result_.epochs,
      .step = result_.epochs * train_data_->batches() + position,
      .batch = position - 1,
      .batches = train_data_->batches(),
      .samples = batch.size(),
      .loss = value,
      .top1 = percent(hits.top1, batch.size()),
      .top5 = percent(hits.top5, batch.size()),
      .lr = last_lr_};
}

void Trainer::finish_epoch(const Score& train) {
  EpochRecord record{
      .epoch = result_.epochs,
      .step = (result_.epochs + 1) * train_data_->batches(),
      .samples = (result_.epochs + 1) * train_samples_,
      .train = train,
      .test = evaluate(*strategy_, *test_data_, test_samples_),
      .lr = last_lr_,
      .images_per_second = static_cast<double>(train_samples_) / train.seconds};
  schedule_->after_epoch();
  ++result_.epochs;
  result_.test = record.test;
  const bool is_best = record.test.top1 > result_.best_acc1;
  result_.best_acc1 = std::max(result_.best_acc1, record.test.top1);
  result_.was_stopped = result_.was_stopped || options_.should_stop();
  save(is_best);
  for (const auto& sink : options_.sinks) {
    sink->on_epoch(record);
  }
}

void Trainer::save(bool is_best) {
  const TrainState state{
      *model_,
      *optimizer_,
      schedule_->scheduler(),
      result_.epochs,
      result_.best_acc1};
  const Status saved =
      save_checkpoint(*options_.fs, folder_, config_, state, is_best);
  if (saved) {
    result_.has_checkpoint = true;
    return;
  }
  const bool is_last = result_.was_stopped || result_.epochs >= config_.epochs;
  if (is_last) {
    saved.value();
  }
  log(LogLevel::kWarning,
      "checkpoint not saved, the one before is kept: " +
          to_string(saved.error()));
}

void Trainer::log(LogLevel level, std::string_view message) const {
  if (log_file_ != nullptr) {
    log_file_->write(level, message);
  }
  if (options_.log != nullptr) {
    options_.log->write(level, message);
  }
}

} // namespace lockstep::train
