// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/setup.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/device/device_list.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/internal/kernel_choice.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/train/hooks/hook_table.h"
#include "lockstep/train/hooks/weight_average.h"
#include "lockstep/train/loop/flag_checks.h"
#include "lockstep/train/loop/group_fit.h"
#include "lockstep/train/loop/resume_check.h"
#include "lockstep/train/loop/run_identity.h"
#include "lockstep/train/step/class_weights.h"
#include "lockstep/train/step/device_choice.h"
#include "lockstep/train/step/image_fit.h"
#include "lockstep/train/step/param_groups.h"
#include "lockstep/train/step/precision.h"

namespace lockstep::train {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

[[noreturn]] void cannot_share(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.ranks",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_FLAGS"});
}

// Of each batch every rank has the same number of samples: the average of their
// gradients is that of the batch.
std::int64_t batch_share(std::int64_t batch, const dist::ProcessGroup& group) {
  if (batch % group.size() != 0) {
    const std::int64_t fewer = batch / group.size() * group.size();
    cannot_share(
        format(
            "--batch-size {} over {} ranks leaves a rest",
            batch,
            group.size()),
        format(
            "{}{} works",
            fewer == 0 ? "" : format("{} or ", fewer),
            fewer + group.size()));
  }
  return batch / group.size();
}

// The one that a rank uses of those that are named for all on its machine.
std::vector<c10::Device> devices_of(
    const dist::ProcessGroup& group,
    std::vector<c10::Device> named) {
  if (!group || named.size() == 1) {
    return named;
  }
  const RankInfo place = group.place();
  const auto index = static_cast<std::size_t>(place.local_rank);
  // 0 where the launcher does not tell.
  const auto local_size = static_cast<std::size_t>(place.local_size);
  if (index >= named.size() ||
      (local_size != 0 && local_size != named.size())) {
    cannot_share(
        format(
            "{} are named for {} on this machine",
            counted(named.size(), "device"),
            counted(std::max(local_size, index + 1), "rank")),
        "name one device, or one for each rank");
  }
  return {named[index]};
}

void open_data(Setup& setup, const RunStart& start, const OwnParts& own) {
  const TrainConfig& config = start.config;
  const auto train = resized(own.first_data(), start.images);
  if (!start.images.text.empty()) {
    setup.lines.push_back({.text = start.images.text});
  }
  setup.train_samples = limited(train->size(), config.max_train_samples);
  const auto loader = [&](const auto& data, std::int64_t batch_size) {
    return std::make_unique<Loader<Batch>>(
        data,
        LoaderOptions{
            .batch_size = batch_size,
            .workers = config.workers,
            .pin_memory = setup.devices.front().is_cuda()});
  };
  if (train->num_classes() == 1 && !config.test_only) {
    setup.lines.push_back(
        {.level = LogLevel::kWarning,
         .text = "the data have one class: a net that always says it is right, "
                 "and nothing else is learned"});
  }
  if (config.sampler == "balanced" && !config.test_only) {
    setup.sample_weights = balanced_sample_weights(*train, setup.train_samples);
  }
  const std::int64_t own_batch = batch_share(config.batch_size, setup.group);
  setup.train_set = train;
  setup.train_data = loader(train, own_batch);
  if (!own.has_test()) {
    setup.lines.push_back({.text = "no test: there are no test data"});
    return;
  }
  setup.test_samples = limited(own.test_data->size(), config.max_eval_samples);
  setup.test_set = resized(own.test_data, start.images);
  const std::vector<std::int64_t> shape = own.test_data->sample_shape();
  if (std::string text = resize_text("test images", shape, start.images);
      !text.empty() && shape != own.first_data()->sample_shape()) {
    setup.lines.push_back({.text = std::move(text)});
  }
  setup.test_data = loader(
      setup.test_set,
      config.val_batch_size > 0 ? config.val_batch_size : own_batch);
}

// Python's and timm's scripts keep an average beside the weights.
void tell_of_average(Setup& setup, const std::string& file, FileSystem& fs) {
  const auto loaded = ckpt::load(file, {}, fs);
  if (loaded && loaded.value().root.find(kAverageKey) != nullptr) {
    setup.lines.push_back(
        {.text = format(
             "{} has an average of the weights, too ({}), which is not taken: "
             "'lockstep ckpt pick {} {} -o average.pth' makes a file of it",
             file,
             kAverageKey,
             file,
             kAverageKey)});
  }
}

/// Takes what fits, and says what did not.
void load_first_weights(
    Setup& setup,
    const TrainConfig& config,
    FileSystem& fs) {
  const std::string& file = config.initial_checkpoint;
  const LoadReport report = load_weights(
      setup.model.module(),
      file,
      {.may_differ = config.partial ? MayDiffer::kAnything : MayDiffer::kEnds},
      fs);
  std::string text = format("weights of {}:", file);
  for (const std::string& line : to_lines(report)) {
    text += "\n  " + line;
  }
  setup.lines.push_back({.text = std::move(text)});
  tell_of_average(setup, file, fs);
}

void prepare_model(Setup& setup, const RunStart& start, FileSystem& fs) {
  // A checkpoint replaces first weights: their file may be gone.
  if (!start.config.initial_checkpoint.empty() &&
      start.checkpoint() == nullptr) {
    load_first_weights(setup, start.config, fs);
  }
  if (has_channels_last(start.config)) {
    // Convolutions take the layout of their weights; images may stay as is.
    to_memory_format(setup.model.module(), at::MemoryFormat::ChannelsLast);
  }
}

// Groups of the settings, of a run that begins.
void choose_groups(Setup& setup, const TrainConfig& config, Params& params) {
  std::vector<ParamGroup> groups = chosen_groups(config, setup.model.module());
  if (groups.empty()) {
    return;
  }
  check_rates(config, groups);
  setup.lines.push_back({.text = groups_text(groups)});
  const bool has_one_rate = std::ranges::all_of(
      groups,
      [&](const ParamGroup& group) { return group.lr() == config.lr; });
  if (config.layer_decay != 1.0 && has_one_rate) {
    setup.lines.push_back(
        {.level = LogLevel::kWarning,
         .text = "--layer-decay has no effect: the model has one layer"});
  }
  params = std::move(groups);
}

/// As the settings say, in the groups of the checkpoint where these are others.
OptimizerRef named_optimizer(Setup& setup, const RunStart& start) {
  Params params(setup.model.module());
  const Resumption* const from = start.checkpoint();
  const ckpt::Value* const state =
      from == nullptr ? nullptr : from->checkpoint.root.find("optimizer");
  if (state == nullptr) {
    choose_groups(setup, start.config, params);
  } else {
    naming_the_file(*from, start.config, [&] {
      if (auto fit = fit_groups(*state, setup.model.module())) {
        params = std::move(fit->groups);
        setup.lines.push_back({.text = std::move(fit->note)});
      }
    });
    const ckpt::Value* const args = from->checkpoint.root.find("args");
    for (const std::string& flag : group_flags_beside(start.config, args)) {
      setup.lines.push_back(
          {.level = LogLevel::kWarning,
           .text = format(
               "--{}: ignored, the run goes on with the checkpoint's groups",
               flag)});
    }
  }
  return std::shared_ptr<Optimizer>(
      build_optimizer(start.config, std::move(params)));
}

} // namespace

std::int64_t Setup::steps_in(std::int64_t batches) const {
  return ceil_div(batches, accumulate);
}

std::int64_t Setup::steps_of(std::int64_t samples) const {
  return steps_in(ceil_div(
      ceil_div(samples, group.size()),
      train_data->options().batch_size));
}

std::int64_t Setup::steps_left(std::int64_t epochs, std::int64_t consumed)
    const {
  if (epochs <= 0) {
    return 0;
  }
  return steps_of(train_samples - consumed) +
         (epochs - 1) * steps_of(train_samples);
}

namespace {

std::unique_ptr<Schedule>
make_schedule(const Setup& setup, const RunStart& start, const OwnParts& own) {
  Optimizer& optimizer = setup.strategy->optimizer();
  return own.schedule ? std::make_unique<Schedule>(
                            own.schedule,
                            optimizer,
                            own.schedules_steps)
                      : std::make_unique<Schedule>(
                            start.config,
                            optimizer,
                            setup.steps_of(setup.train_samples),
                            start.best_by.better);
}

// A step that a rank begins again has exchanged nothing.
void refuse_synced_norms(
    const TrainConfig& config,
    const TrainerOptions& options,
    const torch::nn::Module& module) {
  if (!config.auto_batch || options.group.size() == 1 ||
      count_sync_batchnorms(module) == 0) {
    return;
  }
  cannot_share(
      "--auto-batch: the ranks exchange the statistics of batch norms inside a "
      "step (convert_sync_batchnorm), which one of them cannot begin again",
      "leave one of them out");
}

// Before the strategy, which looks at what is to be trained.
StepHooks make_hooks(
    const TrainConfig& config,
    const TrainerOptions& options,
    torch::nn::Module& module) {
  refuse_flags(config, options);
  refuse_synced_norms(config, options, module);
  StepHooks hooks = hooks_for(config, module);
  hooks.insert(hooks.end(), options.hooks.begin(), options.hooks.end());
  return hooks;
}

// An average that mostly is the weights before training when the run ends.
void tell_of_slow_average(Setup& setup, const TrainConfig& config) {
  constexpr double kMuch = 0.1;
  const std::int64_t steps =
      setup.steps_of(setup.train_samples) * config.epochs;
  const double left = std::pow(config.ema, steps);
  if (config.test_only || steps == 0 || left < kMuch) {
    return;
  }
  setup.lines.push_back(
      {.level = LogLevel::kWarning,
       .text = format(
           "--ema {}: after all {} steps {:.0f} % of the average is still the "
           "first weights; --ema {:.6g} leaves 1 %",
           shortest(config.ema),
           steps,
           100 * left,
           std::pow(0.01, 1.0 / static_cast<double>(steps)))});
}

} // namespace

void prepare_process(const TrainConfig& config) {
  // First: only the kernels of this many threads give the bits of a Python
  // run, and what starts threads of its own hands the number on.
  if (config.threads > 0) {
    at::set_num_threads(static_cast<int>(config.threads));
  }
  choose_kernels(config.kernels);
  set_precision(config);
  if (config.cudnn_benchmark) {
    at::globalContext().setBenchmarkCuDNN(true);
  }
}

Setup set_up(const RunStart& start, const TrainerOptions& options) {
  const TrainConfig& config = start.config;
  const OwnParts& own = options.own;
  prepare_process(config);
  Setup setup{
      .model = own.model,
      .accumulate = config.accumulate,
      .group = options.group};
  DeviceChoice choice = choose_devices(config);
  setup.devices = devices_of(setup.group, parse_devices(choice.spec));
  if (!choice.warning.empty()) {
    setup.lines.push_back(
        {.level = LogLevel::kWarning, .text = std::move(choice.warning)});
  }
  open_data(setup, start, own);
  prepare_model(setup, start, *options.fs);
  setup.hooks = make_hooks(config, options, setup.model.module());
  setup.has_own_code =
      !options.hooks.empty() ||
      !std::ranges::all_of(options.observers, [](const auto& observer) {
        return observer->only_looks();
      });
  setup.strategy = setup.model.strategy(
      {.devices = setup.devices,
       .name = config.strategy,
       .group = setup.group,
       .optimizer =
           own.optimizer ? own.optimizer : named_optimizer(setup, start),
       .task = start.task,
       .autocast = autocast_type(config.amp),
       .cuda_graphs = config.cuda_graphs});
  for (std::string& text : idle_flags(config, own, start.task, setup.devices)) {
    setup.lines.push_back(
        {.level = LogLevel::kWarning, .text = std::move(text)});
  }
  setup.schedule = make_schedule(setup, start, own);
  tell_of_slow_average(setup, config);
  return setup;
}

} // namespace lockstep::train
