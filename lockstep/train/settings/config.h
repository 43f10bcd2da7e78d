// SPDX-License-Identifier: BSD-3-Clause
//
// Every setting of a training run, and the one table of flags that drives the
// command line, `--help`, `args.yaml` and the `args` of a checkpoint.
//   TrainConfig config;
//   set_flag(config, *find_flag("--batch_size"), "64");
//
// Where the values of a run's settings come from. Later ones win:
//   default < --recipe < the resumed run < --config FILE < LOCKSTEP_<FLAG>
//   < flag
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace lockstep::train {

/// What the run's files call a part of a program's own: this, and its class.
inline constexpr std::string_view kOwnPrefix = "own:";

/// What a run does. Names are the flags' with underscores. `data` and `model`
/// are names of parts: the command line makes the parts that they name
/// (`named_parts`); for a trainer they are those of the parts that it is given.
struct TrainConfig {
  std::string data = "fashion-mnist";
  /// Empty: where the distribution installs the data set.
  std::string data_dir = {};
  /// Of data without a part for testing: the share, of each class if there are
  /// classes, that is tested on.
  double val_split = 0.2;
  /// Of a table: the columns to predict, with commas between; empty: the last
  /// one, or with paths of images all others.
  std::string target = {};
  /// Image files that cannot be decoded: "stop" or "skip".
  std::string on_bad_image = "stop";
  /// Where decoded and resized images stay: "none", "ram" or "disk".
  std::string cache = "none";
  /// Units: samples per optimizer step, over all devices of this process.
  std::int64_t batch_size = 128;
  /// Units: samples; 0 means as `batch_size`.
  std::int64_t val_batch_size = 0;
  /// Threads that prepare batches.
  std::int64_t workers = 1;
  /// A word, a YAML file or the steps themselves: augment_file.h. A run keeps
  /// the steps.
  std::string augment = "none";
  /// Units: pixels, height and width to which images are resized; 0: as they
  /// are, or as the model needs them.
  std::int64_t img_size = 0;
  /// Units: samples; 0 means all.
  std::int64_t max_train_samples = 0;
  std::int64_t max_eval_samples = 0;

  std::string model = "resnet18";
  /// Weights to start from: a state dict, or a checkpoint that holds one.
  std::string initial_checkpoint = {};
  /// Take from it whatever fits, not only all but the first and last layer.
  bool partial = false;
  /// Lay out the weights for NHWC kernels (`at::MemoryFormat::ChannelsLast`).
  bool channels_last = false;

  /// Device specs (device_list.h); empty means CUDA when present, else CPU.
  std::string devices = {};
  /// Where `devices` says nothing: CUDA when present.
  bool cuda = true;
  std::string strategy = "auto";
  /// Threads of tensor kernels, over all CPU replicas; 0 means every core.
  std::int64_t threads = 0;
  /// kernels/install.h, for the process. "exact": faster where the bits are the
  /// same; "lockstep": with all its options; "torch": LibTorch's own.
  std::string kernels = "exact";
  /// Of forward and loss: "bf16" is Python's torch.autocast with bfloat16, with
  /// weights, gradients and their updates in float32; "fp16" the same with
  /// float16 and a scaled loss (hooks/loss_scaler.h); "off": float32; "auto":
  /// bfloat16 where that is fast (precision.h).
  std::string amp = "off";
  /// Of float32 matrix products, as torch.set_float32_matmul_precision has it;
  /// "highest" leaves what the program has set.
  std::string precision = "highest";
  /// The steps of a CUDA device as graphs: strategy.h.
  bool cuda_graphs = false;
  /// cuDNN tries its algorithms on each new shape and takes the fastest, for
  /// the process, as torch.backends.cudnn.benchmark; false leaves what the
  /// program has set.
  bool cudnn_benchmark = false;

  /// What is trained for (task.h), and what chooses the best epoch; "auto": as
  /// the data's targets and the task say.
  std::string task = "auto";
  std::string metric = "auto";
  std::int64_t epochs = 20;
  std::string opt = "sgd";
  double lr = 0.1;
  double momentum = 0.9;
  double weight_decay = 1e-4;
  bool nesterov = false;
  bool fused = false;
  double label_smoothing = 0.0;
  /// Of the loss: "balanced", a file or the numbers themselves
  /// (step/class_weights.h); empty: all classes count alike.
  std::string class_weights = {};
  /// Which samples an epoch has: "shuffle": each once; "balanced": as many,
  /// drawn so that all classes come as often.
  std::string sampler = "shuffle";
  /// Of the distribution Beta(alpha, alpha) by which the training's images and
  /// classes are mixed two by two; 0: they are not.
  double mixup_alpha = 0.0;
  double cutmix_alpha = 0.0;
  /// Units: batches whose gradients are added up for one step of the optimizer.
  std::int64_t accumulate = 1;
  /// A step that does not fit into memory goes again in parts.
  bool auto_batch = false;
  /// Largest norm of all gradients together, and largest number in them; 0:
  /// any.
  double clip_grad = 0.0;
  double clip_value = 0.0;
  /// Decay of the average of the weights, which is tested; 0: there is none.
  double ema = 0.0;
  /// First epoch, from 1 on, whose weights are in the mean that is tested from
  /// there on, 0: none is; and the rate from there on, 0: the schedule's.
  std::int64_t swa_start = 0;
  double swa_lr = 0.0;
  /// Beginnings of names of parameters that are not trained, with commas
  /// between; from epoch `unfreeze_at` on they are, 0: never.
  std::string freeze = {};
  std::int64_t unfreeze_at = 0;
  /// Factor of the rate from layer to layer, from the last one back; 1: none.
  double layer_decay = 1.0;
  /// Rates and decay by the names of parameters: a file, or its rules
  /// (step/param_groups.h).
  std::string param_groups = {};
  /// No weight decay for what has one dimension: norms and biases.
  bool no_decay_norms = false;
  /// Units: epochs without a new best after which the run ends; 0: any.
  std::int64_t patience = 0;
  /// What a loss that is not a finite number does: "stop" or "warn".
  std::string on_nan = "stop";
  std::string lr_scheduler = "steplr";
  std::int64_t lr_step_size = 30;
  double lr_gamma = 0.1;
  std::vector<std::int64_t> lr_milestones = {};
  /// Units: epochs that `reducelronplateau` waits.
  std::int64_t lr_patience = 10;
  /// The lowest rate of `cosineannealinglr` and `reducelronplateau`.
  double min_lr = 0.0;
  /// Units: epochs over which the rate rises to its first one.
  std::int64_t warmup_epochs = 0;
  /// Units: steps. The schedule goes on beneath it.
  std::int64_t warmup_steps = 0;
  std::int64_t seed = 0;

  /// Run folder; empty: `runs/<time>-<model>`.
  std::string output = {};
  std::string name = {};
  /// Checkpoint file, run folder, "auto" or "best": checkpoints.h.
  std::string resume = {};
  /// Refuse to go on where the bits could differ from an uninterrupted run.
  bool resume_exact = false;
  /// Units: steps between checkpoints; 0: one after each epoch.
  std::int64_t checkpoint_interval = 0;
  /// Units: newest checkpoints that stay, beside the best one.
  std::int64_t keep = 2;
  /// Units: steps between lines of steps.csv and of the log.
  std::int64_t log_interval = 50;
  /// Units: steps that trace.json shows (docs/runs.md); 0: there is none.
  std::int64_t profile = 0;
  std::string progress = "auto";
  bool quiet = false;
  bool test_only = false;

  friend bool operator==(const TrainConfig&, const TrainConfig&) = default;
};

/// What `--threads` takes at most: LibTorch starts them all, and ends the
/// program where the system has no more.
inline constexpr std::int64_t kMaxThreads = 1024;

/// Heading under which `--help` lists a flag.
enum class FlagGroup {
  kData,
  kImages,
  kModel,
  kDevices,
  kKernels,
  kTask,
  kOptimization,
  kStep,
  kParts,
  kLearningRate,
  kRun,
  kOutput
};

/// One row of the table: one setting.
struct Flag {
  using Member = std::variant<
      std::string TrainConfig::*,
      std::int64_t TrainConfig::*,
      double TrainConfig::*,
      bool TrainConfig::*,
      std::vector<std::int64_t> TrainConfig::*>;

  /// "batch-size".
  std::string_view name = {};
  /// Other spellings, comma separated, with dashes: "-b,--validation-batch".
  std::string_view aliases = {};
  Member member = &TrainConfig::data;
  FlagGroup group = FlagGroup::kRun;
  /// Placeholder in `--help`: "N".
  std::string_view value = {};
  std::string_view help = {};
  /// Allowed words separated by '|'; empty: any.
  std::string_view choices = {};
  /// Smallest allowed number.
  double minimum = 0.0;
  /// False for what concerns one start of the program, not the run.
  bool is_saved = true;
  /// Words that completion offers where any is allowed, separated by '|'.
  std::string_view suggestions = {};
  /// Largest allowed number.
  double maximum = std::numeric_limits<double>::infinity();
  /// Beside its choices it takes the name of a program's own part.
  bool may_be_own = false;

  [[nodiscard]] bool is_switch() const {
    return std::holds_alternative<bool TrainConfig::*>(member);
  }
  /// Key in `args.yaml` and in a checkpoint's `args`: "batch_size".
  [[nodiscard]] std::string key() const;
};

/// All flags, in the order of `--help`.
std::span<const Flag> flag_table();

/// "Optimization".
std::string_view group_title(FlagGroup group);

/// The flag spelled `--batch-size`, `--batch_size` or `-b`; null if none.
const Flag* find_flag(std::string_view spelling);

/// The flag whose key is `batch_size`; null if none.
const Flag* find_key(std::string_view key);

/// Every long spelling with its dashes, for suggestions.
std::vector<std::string> flag_spellings();

/// Sets the flag's member from text. Errors: throws kInvalidArgument that
/// names the flag, what was expected and what was given.
void set_flag(TrainConfig& config, const Flag& flag, std::string_view text);

/// `config`, if every member is what its flag takes.
/// Errors: as `set_flag`.
TrainConfig checked_flags(TrainConfig config);

/// The member as text that `set_flag` reads back.
std::string get_flag(const TrainConfig& config, const Flag& flag);

/// The place that gave each setting its value.
class SettingSources {
 public:
  /// `place` reads well after "from": "the command line", "run.yaml:3".
  void set(const Flag& flag, std::string place);
  /// `otherwise` for a setting that nothing has set.
  [[nodiscard]] std::string of(
      const Flag& flag,
      std::string_view otherwise = "the program") const;

 private:
  std::map<std::string_view, std::string> places_;
};

/// "LOCKSTEP_BATCH_SIZE".
std::string environment_name(const Flag& flag);

/// The value of a variable; nothing if it is not set.
using Environment =
    std::function<std::optional<std::string>(const std::string& name)>;

/// The process's. Threads: none may change the environment meanwhile.
Environment process_environment();

/// Sets what variables `LOCKSTEP_<FLAG>` name. An empty one counts as not set.
/// Errors: as `set_flag`, naming the variable.
void apply_environment(
    TrainConfig& config,
    SettingSources& sources,
    const Environment& environment = process_environment());

/// One line per setting: name, value, source.
std::string settings_table(
    const TrainConfig& config,
    const SettingSources& sources);

} // namespace lockstep::train
#pragma GCC visibility pop
