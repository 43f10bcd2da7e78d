// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/setup.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/models/registry.h"
#include "lockstep/tensor/cpu_features.h"
#include "lockstep/tensor/kernel_choice.h"
#include "lockstep/tensor/load_weights.h"
#include "lockstep/tensor/memory_format.h"
#include "lockstep/train/device_choice.h"
#include "lockstep/train/image_fit.h"
#include "lockstep/train/precision.h"
#include "lockstep/train/run_identity.h"

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
std::int64_t batch_share(std::int64_t batch, const Ranks& ranks) {
  if (batch % ranks.size != 0) {
    const std::int64_t fewer = batch / ranks.size * ranks.size;
    cannot_share(
        format(
            "--batch-size {} over {} ranks leaves a rest",
            batch,
            ranks.size),
        format(
            "{}{} works",
            fewer == 0 ? "" : format("{} or ", fewer),
            fewer + ranks.size));
  }
  return batch / ranks.size;
}

// The one that a rank uses of those that are named for all on its machine.
std::vector<c10::Device> devices_of(
    const Ranks& ranks,
    std::vector<c10::Device> named) {
  if (!ranks.group || named.size() == 1) {
    return named;
  }
  const auto index = static_cast<std::size_t>(ranks.place.local_rank);
  // 0 where the launcher does not tell.
  const auto local_size = static_cast<std::size_t>(ranks.place.local_size);
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

void open_data(Setup& setup, const TrainConfig& config, const OwnParts& own) {
  const auto [train_set, test_set] = open_data_of(config, own);
  const ImageFit fit = fit_images(
      config.img_size,
      own.model.is_empty() ? config.model : std::string(),
      train_set->sample_shape());
  const auto train = resized(train_set, fit);
  setup.img_size = fit.size;
  if (!fit.text.empty()) {
    setup.lines.push_back({.text = fit.text});
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
  const std::int64_t own_batch = batch_share(config.batch_size, setup.ranks);
  setup.train_set = train;
  setup.train_data = loader(train, own_batch);
  if (test_set == nullptr) {
    setup.lines.push_back({.text = "no test: the program gave no test data"});
    return;
  }
  setup.test_samples = limited(test_set->size(), config.max_eval_samples);
  setup.test_data = loader(
      resized(test_set, fit),
      config.val_batch_size > 0 ? config.val_batch_size : own_batch);
}

/// As Python's `torch.manual_seed`, which knows devices of other makers, too.
void seed_generators(std::uint64_t seed, std::span<const c10::Device> devices) {
  at::manual_seed(seed);
  for (const c10::Device& device : devices) {
    if (device.is_privateuseone()) {
      at::Generator generator = at::globalContext().defaultGenerator(device);
      const std::scoped_lock lock(generator.mutex());
      generator.set_current_seed(seed);
    }
  }
}

ModelOptions options_for(const Dataset& data) {
  const std::vector<std::int64_t> shape = data.sample_shape();
  ModelOptions options{
      .num_classes = data.num_classes(),
      .in_channels = shape.front()};
  if (shape.size() == 3) {
    options.image_height = shape[1];
    options.image_width = shape[2];
  }
  return options;
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

void build_model(
    Setup& setup,
    const TrainConfig& config,
    const OwnParts& own,
    FileSystem& fs) {
  setup.model = own.model;
  if (setup.model.is_empty()) {
    // Its initial weights are the generator's first numbers.
    seed_generators(static_cast<std::uint64_t>(config.seed), setup.devices);
    setup.model = make_model(config.model, options_for(*setup.train_set));
    if (const int rank = setup.ranks.place.rank; rank > 0) {
      // What dropout leaves out differs from rank to rank.
      seed_generators(
          static_cast<std::uint64_t>(config.seed + rank),
          setup.devices);
    }
  }
  if (!config.initial_checkpoint.empty()) {
    load_first_weights(setup, config, fs);
  }
  if (has_channels_last(config)) {
    // Convolutions take the layout of their weights; images may stay as is.
    to_memory_format(setup.model.module(), at::MemoryFormat::ChannelsLast);
  }
}

} // namespace

std::int64_t Setup::steps_of(std::int64_t samples) const {
  return ceil_div(
      ceil_div(samples, ranks.size),
      train_data->options().batch_size);
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

// What is allowed, and seldom meant.
void warn_of_choices(
    Setup& setup,
    const TrainConfig& config,
    const OwnParts& own) {
  const auto warn = [&setup](std::string text) {
    setup.lines.push_back(
        {.level = LogLevel::kWarning, .text = std::move(text)});
  };
  if (own.loss && config.label_smoothing != 0) {
    warn("--label-smoothing has no effect on a loss of the program's own");
  }
  if (own.has_data() && config.augment != "none") {
    warn("--augment has no effect on data of the program's own");
  }
  if (config.lr_scheduler == "multisteplr" && config.lr_milestones.empty()) {
    warn(
        "--lr-scheduler multisteplr without --lr-milestones never changes the "
        "rate");
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

} // namespace

Setup set_up(
    const TrainConfig& config,
    const OwnParts& own,
    FileSystem& fs,
    const Ranks& ranks) {
  // First: only the kernels of this many threads give the bits of a Python
  // run, and what starts threads of its own hands the number on.
  if (config.threads > 0) {
    at::set_num_threads(static_cast<int>(config.threads));
  }
  choose_kernels(config.kernels);
  set_precision(config);
  Setup setup;
  setup.ranks = ranks;
  DeviceChoice choice =
      choose_devices(config, static_cast<int>(device_count("cuda")));
  setup.devices = devices_of(ranks, parse_devices(choice.spec));
  if (!choice.warning.empty()) {
    setup.lines.push_back(
        {.level = LogLevel::kWarning, .text = std::move(choice.warning)});
  }
  open_data(setup, config, own);
  build_model(setup, config, own, fs);
  setup.strategy = setup.model.strategy(
      {.devices = setup.devices,
       .name = config.strategy,
       .group = ranks.group,
       .loss = own.loss ? own.loss : cross_entropy(config.label_smoothing),
       .test_loss = own.loss ? own.loss : cross_entropy(),
       .has_classes = own.has_classes(),
       .autocast =
           config.amp == "bf16" ? std::optional(at::kBFloat16) : std::nullopt,
       .cuda_graphs = config.cuda_graphs});
  warn_of_choices(setup, config, own);
  setup.optimizer = build_optimizer(config, setup.model.module());
  setup.schedule = std::make_unique<Schedule>(
      config,
      *setup.optimizer,
      setup.steps_of(setup.train_samples));
  return setup;
}

} // namespace lockstep::train
