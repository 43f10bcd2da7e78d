// SPDX-License-Identifier: BSD-3-Clause
//
// One of the runs that kill_test.py kills: kill_run CASE FOLDER DATA. Goes on
// from what is in FOLDER, and ends with status 0 when the run is over. DATA is
// what own_data.py wrote. ranks_kill_test.py has ranks of it.
#include <array>
#include <cstdio>
#include <memory>
#include <new>
#include <string_view>

#include <torch/nn/functional/dropout.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/device/device_list.h"
#include "lockstep/device/sim_control.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/tensor/make_module.h"
#include "lockstep/train/trainer.h"

namespace {

using lockstep::train::TrainConfig;

/// What a run can lose: weights, statistics of a normalisation, random numbers.
/// In training it has memory for `room` samples at once.
struct Net : torch::nn::Module {
  explicit Net(std::int64_t most = 0) : room(most) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor hidden =
        norm->forward(first->forward(x.flatten(1))).relu();
    const at::Tensor kept = torch::nn::functional::dropout(
        hidden,
        torch::nn::functional::DropoutFuncOptions().p(0.3).training(
            is_training()));
    if (is_training() && room > 0 && x.size(0) > room) {
      throw std::bad_alloc();
    }
    return last->forward(kept);
  }
  std::int64_t room = 0; // 0: any number
  torch::nn::Linear first =
      register_module("first", torch::nn::Linear(784, 512));
  torch::nn::BatchNorm1d norm =
      register_module("norm", torch::nn::BatchNorm1d(512));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(512, 10));
};

struct Case {
  std::string_view name = {};
  void (*change)(TrainConfig& config) = nullptr;
  /// In DATA; empty: FashionMNIST and `Net`.
  std::string_view data = {};
  /// In DATA, the model; empty: that of the configuration.
  std::string_view program = {};
  /// Of `Net`; the first of several ranks has room for all.
  std::int64_t room = 0;
  /// Of each of two simulated devices; 0: any number. Units: bytes.
  std::uint64_t device_bytes = 0;
};

// Pictures in folders, with all that is random in them.
void use_pictures(TrainConfig& config) {
  config.data = "folder";
  config.model = "mlp";
  config.img_size = 16;
  config.batch_size = 9;
  config.workers = 2;
  config.augment = "strong";
  config.mixup_alpha = 0.4;
  config.cutmix_alpha = 1.0;
  config.metric = "f1_macro";
}

// What happens around an update, and has a state.
void use_hooks(TrainConfig& config) {
  config.amp = "fp16";
  config.accumulate = 2;
  config.clip_grad = 1.0;
  config.ema = 0.9;
  config.patience = 9;
  config.warmup_steps = 7;
  config.class_weights = "balanced";
  config.sampler = "balanced";
  config.layer_decay = 0.8;
  config.no_decay_norms = true;
  config.auto_batch = true;
  config.lr_scheduler = "cosineannealinglr";
}

constexpr std::array kCases{
    Case{"single", [](TrainConfig& config) { config.opt = "adamw"; }},
    Case{
        "replicas",
        [](TrainConfig& config) {
          config.devices = "cpu*2";
          config.threads = 2;
          config.augment = "crop-flip";
        }},
    Case{
        "sim",
        [](TrainConfig& config) {
          config.devices = "sim*3";
          config.threads = 2;
        }},
    Case{
        "onecycle",
        [](TrainConfig& config) { config.lr_scheduler = "onecyclelr"; }},
    // There is hardly a moment at which no checkpoint is being written.
    Case{
        "every-step",
        [](TrainConfig& config) {
          config.checkpoint_interval = 1;
          config.keep = 1;
        }},
    Case{"hooks", use_hooks},
    Case{
        "hooks-replicas",
        [](TrainConfig& config) {
          use_hooks(config);
          config.devices = "cpu*2";
          config.threads = 2;
          config.lr_scheduler = "reducelronplateau";
          config.lr_patience = 0;
          config.freeze = "norm";
          config.unfreeze_at = 2;
        }},
    Case{.name = "memory", .change = use_hooks, .room = 10},
    Case{
        .name = "memory-replicas",
        .change =
            [](TrainConfig& config) {
              use_hooks(config);
              config.devices = "cpu*2";
              config.threads = 2;
            },
        .room = 10},
    Case{
        .name = "memory-sim",
        .change =
            [](TrainConfig& config) {
              config.devices = "sim*2";
              config.threads = 2;
              config.auto_batch = true;
              config.batch_size = 4000; // more memory than the weights
              config.max_train_samples = 8000;
              config.max_eval_samples = 16; // a test does not go in parts
              config.checkpoint_interval = 1;
            },
        .device_bytes = 24 << 20},
    Case{"folder", use_pictures, "classes"},
    Case{
        "folder-replicas",
        [](TrainConfig& config) {
          use_pictures(config);
          config.devices = "cpu*2";
          config.threads = 2;
        },
        "classes"},
    Case{
        "masks",
        [](TrainConfig& config) {
          config.data = "segmentation";
          config.model = "unet_small";
          config.img_size = 16;
          config.batch_size = 9;
          config.workers = 2;
          config.augment = "strong";
          config.metric = "dice";
        },
        "masks"},
    Case{
        "values",
        [](TrainConfig& config) {
          config.data = "csv";
          config.model = "mlp";
          config.img_size = 16;
          config.batch_size = 9;
          config.augment = "standard";
          config.metric = "r2";
        },
        "values"},
    Case{"program", use_pictures, "classes", "net.pt2"},
    Case{
        "program-replicas",
        [](TrainConfig& config) {
          use_pictures(config);
          config.devices = "cpu*2";
          config.threads = 2;
          config.opt = "adamw";
        },
        "classes",
        "net.pt2"},
};

TrainConfig config_of(
    const Case& chosen,
    const std::string& folder,
    const std::string& data) {
  TrainConfig config;
  config.devices = "cpu";
  config.threads = 1;
  config.epochs = 3;
  config.batch_size = 32;
  config.lr = 0.05;
  config.lr_step_size = 1;
  config.max_train_samples = 400;
  config.max_eval_samples = 128;
  config.log_interval = 1;
  config.checkpoint_interval = 5;
  config.output = folder;
  config.resume = "auto";
  chosen.change(config);
  if (!chosen.data.empty()) {
    config.data_dir = data + "/" + std::string(chosen.data);
  }
  if (!chosen.program.empty()) {
    config.model = data + "/" + std::string(chosen.program);
  }
  return config;
}

lockstep::train::OwnParts parts_of(
    const Case& chosen,
    const TrainConfig& config) {
  if (!chosen.data.empty()) {
    return lockstep::train::named_parts(config);
  }
  const auto group = lockstep::dist::job_group();
  const bool has_room = group.size() > 1 && group.rank() == 0;
  return lockstep::train::named_parts(
      config,
      {.model = lockstep::make_module<Net>(has_room ? 0 : chosen.room)});
}

void limit_memory(const TrainConfig& config, std::uint64_t bytes) {
  if (bytes == 0) {
    return;
  }
  lockstep::parse_devices(config.devices);
  for (const int device : {0, 1}) {
    lockstep::set_sim_memory_limit(device, bytes);
  }
}

} // namespace

int main(int argc, char** argv) {
  for (const Case& chosen : kCases) {
    if (argc == 4 && chosen.name == argv[1]) {
      at::manual_seed(0);
      const TrainConfig config = config_of(chosen, argv[2], argv[3]);
      limit_memory(config, chosen.device_bytes);
      lockstep::train::Trainer trainer(
          config,
          {.own = parts_of(chosen, config)});
      trainer.run();
      return 0;
    }
  }
  for (const Case& known : kCases) {
    std::printf("%s\n", std::string(known.name).c_str());
  }
  return argc == 1 ? 0 : 2;
}
