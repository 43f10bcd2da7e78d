// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/setup.h"

#include <algorithm>
#include <mutex>
#include <span>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "lockstep/data/registry.h"
#include "lockstep/device/device_list.h"
#include "lockstep/kernels/install.h"
#include "lockstep/models/registry.h"
#include "lockstep/tensor/load_weights.h"
#include "lockstep/tensor/memory_format.h"

namespace lockstep::train {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t limited(std::int64_t size, std::int64_t maximum) {
  return maximum == 0 ? size : std::min(size, maximum);
}

TransformOptions transform_of(const TrainConfig& config) {
  if (config.augment == "none") {
    return {};
  }
  return {.crop_padding = 4, .horizontal_flip = true, .seed = config.seed};
}

std::shared_ptr<const Dataset> dataset_of(
    const TrainConfig& config,
    const std::shared_ptr<const Dataset>& own,
    bool train) {
  if (own != nullptr) {
    return own;
  }
  return open_dataset(
      config.data,
      config.data_dir,
      train,
      train ? transform_of(config) : TransformOptions());
}

void open_data(Setup& setup, const TrainConfig& config, const OwnParts& own) {
  const auto train = dataset_of(config, own.train_data, /*train=*/true);
  const auto test = dataset_of(config, own.test_data, /*train=*/false);
  setup.train_samples = limited(train->size(), config.max_train_samples);
  setup.test_samples = limited(test->size(), config.max_eval_samples);
  const auto loader = [&](const auto& data, std::int64_t batch_size) {
    return std::make_unique<Loader>(
        data,
        LoaderOptions{.batch_size = batch_size, .workers = config.workers});
  };
  setup.train_data = loader(train, config.batch_size);
  setup.test_data = loader(
      test,
      config.val_batch_size > 0 ? config.val_batch_size : config.batch_size);
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

AnyModel build_model(
    const Setup& setup,
    const TrainConfig& config,
    const OwnParts& own,
    FileSystem& fs) {
  const Dataset& data = setup.train_data->dataset();
  AnyModel model = own.model;
  if (model.is_empty()) {
    // Its initial weights are the generator's first numbers.
    seed_generators(static_cast<std::uint64_t>(config.seed), setup.devices);
    model = make_model(
        config.model,
        {.num_classes = data.num_classes(),
         .in_channels = data.sample_shape().front()});
  }
  if (!config.initial_checkpoint.empty()) {
    load_weights(model.module(), config.initial_checkpoint, {}, fs);
  }
  if (config.channels_last) {
    // Convolutions take the layout of their weights; images may stay as is.
    to_memory_format(model.module(), at::MemoryFormat::ChannelsLast);
  }
  return model;
}

} // namespace

std::int64_t Setup::steps_of(std::int64_t samples) const {
  return ceil_div(ceil_div(samples, ranks), train_data->options().batch_size);
}

std::int64_t Setup::steps_left(std::int64_t epochs, std::int64_t consumed)
    const {
  if (epochs <= 0) {
    return 0;
  }
  return steps_of(train_samples - consumed) +
         (epochs - 1) * steps_of(train_samples);
}

Setup set_up(
    const TrainConfig& config,
    const OwnParts& own,
    FileSystem& fs,
    int ranks) {
  // First: only the kernels of this many threads give the bits of a Python
  // run, and what starts threads of its own hands the number on.
  if (config.threads > 0) {
    at::set_num_threads(static_cast<int>(config.threads));
  }
  if (config.kernels == "lockstep") {
    kernels::install();
  }
  Setup setup;
  setup.ranks = ranks;
  setup.devices = parse_devices(
      !config.devices.empty()    ? config.devices
      : device_count("cuda") > 0 ? "cuda"
                                 : "cpu");
  open_data(setup, config, own);
  setup.model = build_model(setup, config, own, fs);
  setup.strategy = setup.model.strategy(
      {.devices = setup.devices,
       .name = config.strategy,
       .loss = own.loss ? own.loss : cross_entropy(config.label_smoothing),
       .test_loss = own.loss ? own.loss : cross_entropy()});
  setup.optimizer = build_optimizer(config, setup.model.module());
  setup.schedule = std::make_unique<Schedule>(
      config,
      *setup.optimizer,
      setup.steps_of(setup.train_samples));
  return setup;
}

} // namespace lockstep::train
