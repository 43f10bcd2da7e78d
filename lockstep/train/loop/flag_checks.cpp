// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/flag_checks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/data/open_dataset.h"
#include "lockstep/tensor/internal/cpu_features.h"
#include "lockstep/train/settings/internal/schedules.h"
#include "lockstep/train/step/param_groups.h"

namespace lockstep::train {
namespace {

constexpr std::array<std::string_view, 5> kOptimizerFlags{
    "lr",
    "momentum",
    "weight-decay",
    "nesterov",
    "fused"};
constexpr std::array<std::string_view, 3> kOtherRateFlags{
    "warmup-epochs",
    "warmup-steps",
    "swa-lr"};

bool is_given(const TrainConfig& config, std::string_view name) {
  const Flag& flag = *find_flag(format("--{}", name));
  return get_flag(config, flag) != get_flag(TrainConfig(), flag);
}

/// One way in which flags contradict each other.
struct Contradiction {
  bool (*is_there)(const TrainConfig& config, const TrainerOptions& options) =
      nullptr;
  std::string_view message = {};
  std::string_view hint = {};
};

constexpr std::array kContradictions{
    Contradiction{
        [](const TrainConfig& config, const TrainerOptions& /*options*/) {
          return config.cuda_graphs && config.accumulate > 1;
        },
        "--cuda-graphs records steps of one batch",
        "leave out --accumulate or --cuda-graphs"},
    Contradiction{
        [](const TrainConfig& config, const TrainerOptions& /*options*/) {
          return config.cuda_graphs && config.amp == "fp16";
        },
        "--cuda-graphs records steps of one scale of the loss, and --amp fp16 "
        "changes it",
        "--amp bf16 needs no scale"},
    Contradiction{
        [](const TrainConfig& config, const TrainerOptions& /*options*/) {
          return config.swa_start > 0 && config.ema > 0;
        },
        "--swa-start and --ema keep two averages of the weights",
        "leave one of them out"},
    Contradiction{
        [](const TrainConfig& config, const TrainerOptions& /*options*/) {
          return config.swa_start > 0 && config.swa_lr > 0 &&
                 schedule_row(config.lr_scheduler).is_of_steps;
        },
        "--swa-lr: the steps of --lr-scheduler onecyclelr go to the end of the "
        "run",
        "another schedule, or --swa-start alone"},
    Contradiction{
        [](const TrainConfig& config, const TrainerOptions& /*options*/) {
          return config.auto_batch && config.cuda_graphs;
        },
        "--cuda-graphs records steps of one size, and --auto-batch changes it",
        "leave one of them out"},
    Contradiction{
        [](const TrainConfig& config, const TrainerOptions& options) {
          return config.unfreeze_at > 0 && !config.freeze.empty() &&
                 options.group.size() > 1;
        },
        "--unfreeze-at: several ranks exchange the gradients of the parameters "
        "that were trained when they began",
        "train with one rank, or go on with a new run and "
        "--initial-checkpoint"},
};

/// One way in which settings alone make a flag do nothing, or something that is
/// seldom meant.
struct IdleFlag {
  bool (*is_there)(const TrainConfig& config) = nullptr;
  std::string_view text = {};
};

constexpr std::array kIdleFlags{
    IdleFlag{
        [](const TrainConfig& config) {
          return config.unfreeze_at > 0 && config.freeze.empty();
        },
        "--unfreeze-at has no effect without --freeze"},
    IdleFlag{
        [](const TrainConfig& config) {
          return config.swa_lr > 0 && config.swa_start == 0;
        },
        "--swa-lr has no effect without --swa-start"},
    IdleFlag{
        [](const TrainConfig& config) {
          return config.no_decay_norms && config.weight_decay == 0;
        },
        "--no-decay-norms has no effect without --weight-decay"},
    IdleFlag{
        [](const TrainConfig& config) {
          return config.partial && config.initial_checkpoint.empty();
        },
        "--partial has no effect without --initial-checkpoint"},
    IdleFlag{
        [](const TrainConfig& config) {
          return config.sampler == "balanced" &&
                 config.class_weights == "balanced";
        },
        "--sampler balanced and --class-weights balanced both make up for rare "
        "classes: together they count more than others"},
    IdleFlag{
        [](const TrainConfig& config) {
          return config.test_only && config.resume.empty() &&
                 config.initial_checkpoint.empty();
        },
        "--test-only without --resume or --initial-checkpoint tests random "
        "weights"},
    IdleFlag{
        [](const TrainConfig& config) {
          return config.test_only && config.profile > 0;
        },
        "--profile has no effect with --test-only"},
    IdleFlag{
        [](const TrainConfig& config) {
          return config.test_only && !config.output.empty();
        },
        "--output has no effect with --test-only, which writes nothing"},
    IdleFlag{
        [](const TrainConfig& config) {
          return config.test_only && !config.name.empty();
        },
        "--name has no effect with --test-only, which writes nothing"},
};

/// A flag that is for some data only.
struct DataFlag {
  std::string_view name = {};
  bool (*is_for)(std::string_view data) = nullptr;
};

constexpr std::array kDataFlags{
    DataFlag{"target", [](std::string_view data) { return data == "csv"; }},
    DataFlag{
        "val-split",
        [](std::string_view data) {
          return data != "fashion-mnist" && data != "mnist";
        }},
    DataFlag{"on-bad-image", may_have_image_files},
    DataFlag{"cache", may_have_image_files},
};

/// Collects what is said.
class Sentences {
 public:
  explicit Sentences(const TrainConfig& config) : config_(config) {}

  void add_if(bool is_so, std::string text) {
    if (is_so) {
      texts_.push_back(std::move(text));
    }
  }
  /// Of flags that were set, and a part of the program's own ignores.
  void add_ignored(
      std::span<const std::string_view> flags,
      std::string_view part) {
    for (const std::string_view name : flags) {
      add_if(
          is_given(config_, name),
          format("--{} has no effect on {} of the program's own", name, part));
    }
  }
  std::vector<std::string> take() {
    return std::move(texts_);
  }

 private:
  const TrainConfig& config_;
  std::vector<std::string> texts_;
};

void add_own(Sentences& said, const OwnParts& own) {
  constexpr std::array<std::string_view, 2> kLossFlags{
      "label-smoothing",
      "class-weights"};
  if (!own.task.is_empty()) {
    said.add_ignored(kLossFlags, "a loss");
  }
  if (own.data_name.empty()) {
    constexpr std::array<std::string_view, 5> kOwnDataFlags{
        "augment",
        "target",
        "val-split",
        "on-bad-image",
        "cache"};
    said.add_ignored(kOwnDataFlags, "data");
  }
  if (own.optimizer) {
    said.add_ignored(kOptimizerFlags, "an optimizer");
    said.add_ignored(kGroupFlags, "an optimizer");
  }
  if (own.schedule) {
    said.add_ignored(kScheduleFlags, "a schedule");
    said.add_ignored(kOtherRateFlags, "a schedule");
  }
}

void add_data(
    Sentences& said,
    const TrainConfig& config,
    const std::string& data) {
  for (const DataFlag& flag : kDataFlags) {
    said.add_if(
        !data.empty() && !flag.is_for(data) && is_given(config, flag.name),
        format("--{} has no effect on --data {}", flag.name, data));
  }
}

void add_optimizer(Sentences& said, const TrainConfig& config) {
  for (const std::string_view flag : {"momentum", "nesterov"}) {
    said.add_if(
        (config.opt == "adam" || config.opt == "adamw") &&
            is_given(config, flag),
        format("--{} has no effect on --opt {}", flag, config.opt));
  }
}

void add_schedule(Sentences& said, const TrainConfig& config) {
  const ScheduleRow row = schedule_row(config.lr_scheduler);
  for (const std::string_view flag : kScheduleFlags) {
    said.add_if(
        !row.name.empty() && !row.takes(flag) && is_given(config, flag),
        format(
            "--{} has no effect on --lr-scheduler {}",
            flag,
            config.lr_scheduler));
  }
  said.add_if(
      row.takes("lr-milestones") && config.lr_milestones.empty(),
      "--lr-scheduler multisteplr without --lr-milestones never changes the "
      "rate");
}

} // namespace

void refuse_flags(const TrainConfig& config, const TrainerOptions& options) {
  for (const Contradiction& row : kContradictions) {
    if (row.is_there(config, options)) {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "train.flags",
           .message = std::string(row.message),
           .hint = std::string(row.hint),
           .detail = "E_FLAGS"});
    }
  }
}

void check_rates(
    const TrainConfig& config,
    const std::vector<ParamGroup>& groups) {
  const double lowest =
      std::ranges::min(groups, {}, [](const ParamGroup& group) {
        return group.lr();
      }).lr();
  if (schedule_row(config.lr_scheduler).takes("min-lr") &&
      lowest < config.min_lr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.flags",
         .message = format(
             "--min-lr {} is above the rate {} of a group of parameters",
             shortest(config.min_lr),
             shortest(lowest)),
         .hint = "a lower one, or other groups",
         .detail = "E_FLAGS"});
  }
}

std::vector<std::string> idle_flags(
    const TrainConfig& config,
    const OwnParts& own,
    const Task& task,
    std::span<const c10::Device> devices) {
  Sentences said(config);
  add_own(said, own);
  said.add_if(
      own.task.is_empty() && !task.divisor &&
          is_given(config, "label-smoothing"),
      format(
          "--label-smoothing has no effect on the task {}: it has no classes",
          task.name));
  add_data(said, config, own.data_name);
  add_optimizer(said, config);
  add_schedule(said, config);
  for (const IdleFlag& row : kIdleFlags) {
    said.add_if(row.is_there(config), std::string(row.text));
  }
  said.add_if(
      config.swa_start > config.epochs,
      format(
          "--swa-start {} has no effect in a run of {} epochs",
          config.swa_start,
          config.epochs));
  said.add_if(
      config.cudnn_benchmark && !devices.front().is_cuda(),
      format(
          "--cudnn-benchmark has no effect on {}: cuDNN is for CUDA devices",
          devices.front().str()));
  said.add_if(
      config.amp == "bf16" && devices.front().is_cpu() &&
          bfloat16_products() == Bfloat16Products::kNone,
      "--amp bf16: this processor has no instructions for bfloat16; it trains "
      "3 to 6 times as long as with float32");
  return said.take();
}

std::vector<std::string> group_flags_beside(
    const TrainConfig& config,
    const ckpt::Value* args) {
  std::vector<std::string> flags;
  for (const std::string_view name : kGroupFlags) {
    const Flag& flag = *find_flag(format("--{}", name));
    const bool is_known = args != nullptr && args->find(flag.key()) != nullptr;
    if (is_given(config, name) && !is_known) {
      flags.emplace_back(name);
    }
  }
  return flags;
}

} // namespace lockstep::train
