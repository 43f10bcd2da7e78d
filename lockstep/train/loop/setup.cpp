// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/setup.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include <ATen/Parallel.h>

#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/tensor/internal/cpu_features.h"
#include "lockstep/tensor/internal/kernel_choice.h"
#include "lockstep/tensor/load_weights.h"
#include "lockstep/tensor/memory_format.h"
#include "lockstep/train/hooks/hook_table.h"
#include "lockstep/train/loop/group_fit.h"
#include "lockstep/train/loop/resume_check.h"
#include "lockstep/train/loop/run_identity.h"
#include "lockstep/train/step/device_choice.h"
#include "lockstep/train/step/image_fit.h"
#include "lockstep/train/step/precision.h"

namespace lockstep::train {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t limited(std::int64_t size, std::int64_t maximum) {
  return maximum == 0 ? size : std::min(size, maximum);
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
  const std::int64_t own_batch = batch_share(config.batch_size, setup.group);
  setup.train_set = train;
  setup.train_data = loader(train, own_batch);
  if (!own.has_test()) {
    setup.lines.push_back({.text = "no test: there are no test data"});
    return;
  }
  setup.test_samples = limited(own.test_data->size(), config.max_eval_samples);
  setup.test_data = loader(
      resized(own.test_data, start.images),
      config.val_batch_size > 0 ? config.val_batch_size : own_batch);
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

/// As the settings say, in the groups of the checkpoint where these are others.
OptimizerRef named_optimizer(Setup& setup, const RunStart& start) {
  Params params(setup.model.module());
  const Resumption* const from = start.checkpoint();
  const ckpt::Value* const state =
      from == nullptr ? nullptr : from->checkpoint.root.find("optimizer");
  if (state != nullptr) {
    naming_the_file(*from, start.config, [&] {
      if (auto fit = fit_groups(*state, setup.model.module())) {
        params = std::move(fit->groups);
        setup.lines.push_back({.text = std::move(fit->note)});
      }
    });
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

constexpr std::array<std::string_view, 5> kOptimizerFlags{
    "lr",
    "momentum",
    "weight-decay",
    "nesterov",
    "fused"};
constexpr std::array<std::string_view, 6> kScheduleFlags{
    "lr-step-size",
    "lr-gamma",
    "lr-milestones",
    "lr-patience",
    "min-lr",
    "warmup-epochs"};

/// Of flags that were set, and a part of the program's own ignores.
void warn_of_others(
    std::span<const std::string_view> flags,
    const TrainConfig& config,
    std::string_view part,
    const std::function<void(std::string)>& warn) {
  for (const std::string_view name : flags) {
    const Flag& flag = *find_flag(format("--{}", name));
    if (get_flag(config, flag) != get_flag(TrainConfig(), flag)) {
      warn(format("--{} has no effect on {} of the program's own", name, part));
    }
  }
}

// What is allowed, and seldom meant.
void warn_of_choices(
    Setup& setup,
    const TrainConfig& config,
    const OwnParts& own) {
  const auto warn = [&setup](std::string text) {
    setup.lines.push_back(
        {.level = LogLevel::kWarning, .text = std::move(text)});
  };
  if (!own.task.is_empty() && config.label_smoothing != 0) {
    warn("--label-smoothing has no effect on a loss of the program's own");
  }
  if (own.data_name.empty() && config.augment != "none") {
    warn("--augment has no effect on data of the program's own");
  }
  if (own.optimizer) {
    warn_of_others(kOptimizerFlags, config, "an optimizer", warn);
  }
  if (own.schedule) {
    warn_of_others(kScheduleFlags, config, "a schedule", warn);
  }
  if (config.lr_scheduler == "multisteplr" && config.lr_milestones.empty()) {
    warn(
        "--lr-scheduler multisteplr without --lr-milestones never changes the "
        "rate");
  }
  if (config.unfreeze_at > 0 && config.freeze.empty()) {
    warn("--unfreeze-at has no effect without --freeze");
  }
  const bool is_plateau = config.lr_scheduler == "reducelronplateau";
  if (config.min_lr > 0 && !is_plateau &&
      config.lr_scheduler != "cosineannealinglr") {
    warn("--min-lr has no effect on --lr-scheduler " + config.lr_scheduler);
  }
  if (config.lr_patience != TrainConfig().lr_patience && !is_plateau) {
    warn(
        "--lr-patience has no effect on --lr-scheduler " + config.lr_scheduler);
  }
  if (config.test_only && config.resume.empty() &&
      config.initial_checkpoint.empty()) {
    warn(
        "--test-only without --resume or --initial-checkpoint tests random "
        "weights");
  }
  if (config.amp == "bf16" && setup.devices.front().is_cpu() &&
      bfloat16_products() == Bfloat16Products::kNone) {
    warn(
        "--amp bf16: this processor has no instructions for bfloat16; it "
        "trains 3 to 6 times as long as with float32");
  }
}

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

// Before the strategy, which looks at what is to be trained.
StepHooks make_hooks(
    const TrainConfig& config,
    const TrainerOptions& options,
    torch::nn::Module& module) {
  const auto contradiction = [](std::string message, std::string hint) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.hooks",
         .message = std::move(message),
         .hint = std::move(hint),
         .detail = "E_FLAGS"});
  };
  if (config.cuda_graphs && config.accumulate > 1) {
    contradiction(
        "--cuda-graphs records steps of one batch",
        "leave out --accumulate or --cuda-graphs");
  }
  if (config.unfreeze_at > 0 && !config.freeze.empty() &&
      options.group.size() > 1) {
    contradiction(
        "--unfreeze-at: several ranks exchange the gradients of the parameters "
        "that were trained when they began",
        "train with one rank, or go on with a new run and "
        "--initial-checkpoint");
  }
  StepHooks hooks = hooks_for(config, module);
  hooks.insert(hooks.end(), options.hooks.begin(), options.hooks.end());
  return hooks;
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
}

Setup set_up(const RunStart& start, const TrainerOptions& options) {
  const TrainConfig& config = start.config;
  const OwnParts& own = options.own;
  prepare_process(config);
  Setup setup{
      .model = own.model,
      .accumulate = config.accumulate,
      .group = options.group};
  DeviceChoice choice =
      choose_devices(config, static_cast<int>(device_count("cuda")));
  setup.devices = devices_of(setup.group, parse_devices(choice.spec));
  if (!choice.warning.empty()) {
    setup.lines.push_back(
        {.level = LogLevel::kWarning, .text = std::move(choice.warning)});
  }
  open_data(setup, start, own);
  prepare_model(setup, start, *options.fs);
  setup.hooks = make_hooks(config, options, setup.model.module());
  setup.strategy = setup.model.strategy(
      {.devices = setup.devices,
       .name = config.strategy,
       .group = setup.group,
       .optimizer =
           own.optimizer ? own.optimizer : named_optimizer(setup, start),
       .task = start.task,
       .autocast =
           config.amp == "bf16" ? std::optional(at::kBFloat16) : std::nullopt,
       .cuda_graphs = config.cuda_graphs});
  warn_of_choices(setup, config, own);
  setup.schedule = make_schedule(setup, start, own);
  return setup;
}

} // namespace lockstep::train
