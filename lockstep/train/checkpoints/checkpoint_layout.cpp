// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/state_dict.h"
#include "lockstep/train/checkpoints.h"
#include "lockstep/train/checkpoints/foreign_values.h"

namespace lockstep::train {
namespace {

/// How one kind of script calls things.
struct Layout {
  std::string_view name = {};
  /// The layout is this one if the file has this key.
  std::string_view marker = {};
  std::string_view weights = {};
  std::string_view scheduler = {};
  std::string_view best = {};
  /// Whether `epoch` is the last one done; else it is the next one to do.
  bool epoch_is_done = false;
};

constexpr std::string_view kEpoch = "epoch";
constexpr std::string_view kOptimizer = "optimizer";
// What says something about the run, and is no state of it.
constexpr std::array<std::string_view, 4> kFacts{
    kEpoch,
    "arch",
    "args",
    "version"};
// PyTorch's tutorials call the state of an optimizer and of a schedule so.
constexpr std::string_view kOptimizerState = "optimizer_state_dict";
constexpr std::array<std::string_view, 2> kSchedulerStates{
    "scheduler_state_dict",
    "lr_scheduler_state_dict"};

// The first row that fits. Sources: torchvision references/classification
// (train.py), timm.utils.CheckpointSaver, examples/imagenet (main.py), the
// tutorial "Saving and loading a general checkpoint".
// clang-format off
constexpr std::array kLayouts{
    Layout{"Lockstep", "lockstep", "state_dict", "scheduler", "best_acc1"},
    Layout{"torchvision", "lr_scheduler", "model", "lr_scheduler", {}, true},
    Layout{"timm", "version", "state_dict", "lr_scheduler", "metric", true},
    Layout{"{epoch, model, ...}", "model", "model", "scheduler", {}, true},
    Layout{"PyTorch's tutorials", "model_state_dict", "model_state_dict",
           "scheduler", {}, true},
    Layout{"{epoch, best_mIoU, ...}", "best_mIoU", "state_dict", "scheduler"},
    Layout{"PyTorch's examples", "state_dict", "state_dict", "scheduler",
           "best_acc1"},
};

/// A setting that lives on in the optimizer's first group or in the schedule.
struct KeptSetting {
  std::string_view key = {};
  std::string_view part = {};
  std::string_view name = {};
  /// The one-cycle schedule moves the value; what was set is here.
  std::string_view peak = {};
};

constexpr std::array kKept{
    KeptSetting{"lr", "optimizer", "initial_lr", "max_lr"},
    KeptSetting{"momentum", "optimizer", "momentum", "max_momentum"},
    KeptSetting{"weight_decay", "optimizer", "weight_decay"},
    KeptSetting{"nesterov", "optimizer", "nesterov"},
    KeptSetting{"lr_step_size", "scheduler", "step_size"},
    KeptSetting{"lr_milestones", "scheduler", "milestones"},
    KeptSetting{"lr_gamma", "scheduler", "gamma"},
};
// clang-format on

[[noreturn]] void
refuse_layout(const std::string& path, std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.resume",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = path,
       .detail = "E_NOT_A_RUN"});
}

/// True for a state dict on its own: a dict with nothing but tensors.
bool is_bare_weights(const ckpt::Value& root) {
  const ckpt::Dict* dict = root.as_dict();
  return dict != nullptr && !dict->items.empty() &&
         std::ranges::all_of(dict->items, [](const ckpt::Item& item) {
           return item.second.as_tensor() != nullptr;
         });
}

const ckpt::Value* optimizer_of(const ckpt::Value& root) {
  const ckpt::Value* optimizer = root.find(kOptimizer);
  return optimizer == nullptr ? root.find(kOptimizerState) : optimizer;
}

const ckpt::Value* scheduler_of(const ckpt::Value& root, const Layout& layout) {
  const ckpt::Value* scheduler = root.find(layout.scheduler);
  for (const std::string_view key : kSchedulerStates) {
    scheduler = scheduler == nullptr ? root.find(key) : scheduler;
  }
  return scheduler;
}

/// What to do with a file from which no run can go on.
std::string hint_for(const ckpt::Value& root, const std::string& path) {
  // A state dict, or one in a dict, or a whole model that was pickled.
  const bool has_weights = is_bare_weights(root) || root.as_object() ||
                           root.find("state_dict") || root.find("model") ||
                           root.find("model_state_dict");
  return has_weights
             ? format(
                   "--initial-checkpoint {} starts a new run from its weights",
                   path)
             : format("'lockstep ckpt {}' shows what it holds", path);
}

const Layout& layout_of(const ckpt::Value& root, const std::string& path) {
  if (is_bare_weights(root)) {
    refuse_layout(
        path,
        "the file holds weights only, not the state of a run",
        hint_for(root, path));
  }
  if (const ckpt::Object* object = root.as_object()) {
    refuse_layout(
        path,
        format(
            "the file holds an object of class '{}', not the state of a run",
            escape(object->global)),
        hint_for(root, path));
  }
  const auto* found = std::ranges::find_if(kLayouts, [&](const Layout& row) {
    const ckpt::Value* marker = root.find(row.marker);
    // A name of a model, or of a version, marks nothing.
    return marker != nullptr && marker->as_string() == nullptr &&
           root.find(row.weights) != nullptr;
  });
  const Layout& layout = found == kLayouts.end() ? kLayouts.back() : *found;
  std::vector<std::string> missing;
  for (const std::string_view key : {kEpoch, layout.weights}) {
    if (root.find(key) == nullptr) {
      missing.push_back(format("'{}'", key));
    }
  }
  if (optimizer_of(root) == nullptr) {
    missing.push_back(format("'{}'", kOptimizer));
  }
  if (!missing.empty()) {
    refuse_layout(
        path,
        format("not a checkpoint of a run; missing {}", join(missing, ", ")),
        hint_for(root, path));
  }
  return layout;
}

/// A number, also as a tensor of one element, as Python's scripts save it.
double number_of(const ckpt::Value* value) {
  if (value == nullptr) {
    return 0.0;
  }
  const double number = number_in(*value).value_or(0.0);
  return std::isfinite(number) ? number : 0.0;
}

std::int64_t next_epoch(
    const ckpt::Value& saved,
    const Layout& layout,
    const std::string& path) {
  const std::int64_t* epoch = saved.as_int();
  if (epoch == nullptr || *epoch < 0) {
    refuse_layout(
        path,
        format(
            "'epoch' must be a whole number >= 0, got {}",
            epoch == nullptr ? std::string(saved.type_name())
                             : std::to_string(*epoch)),
        format("'lockstep ckpt {}' shows what it holds", path));
  }
  return layout.epoch_is_done ? *epoch + 1 : *epoch;
}

/// A setting of the script: argparse's Namespace keeps them in its state, other
/// scripts save a dict. Empty if the file does not say it.
std::string_view arg_of(const ckpt::Value& root, std::string_view name) {
  const ckpt::Value* args = root.find("args");
  const ckpt::Object* space = args == nullptr ? nullptr : args->as_object();
  const ckpt::Value* values = space == nullptr ? args : space->state.get();
  const ckpt::Value* value = values == nullptr ? nullptr : values->find(name);
  return value == nullptr ? "" : value->text();
}

/// The model as the script's user named it; empty if the file does not say.
std::string_view model_name(const ckpt::Value& root) {
  const ckpt::Value* arch = root.find("arch");
  return arch == nullptr ? arg_of(root, "model") : arch->text();
}

/// True if what the file calls its best is an accuracy: timm's metric is what
/// --eval-metric says.
bool has_accuracy(const ckpt::Value& root) {
  const std::string_view metric = arg_of(root, "eval_metric");
  return metric.empty() || metric == "top1";
}

/// The groups of an optimizer's state, or the state of a schedule.
std::vector<ckpt::Value> parts_of(
    const ckpt::Value& ours,
    std::string_view name) {
  const ckpt::Value* part = ours.find(name);
  const ckpt::Value* groups =
      part == nullptr ? nullptr : part->find("param_groups");
  const ckpt::List* list = groups == nullptr ? nullptr : groups->as_list();
  if (list != nullptr) {
    return list->items;
  }
  return part == nullptr ? std::vector<ckpt::Value>()
                         : std::vector<ckpt::Value>{*part};
}

/// What `part` says of a setting; nothing if it does not.
std::optional<ckpt::Value> kept_value(
    const ckpt::Value& part,
    const KeptSetting& kept) {
  const ckpt::Value* value = part.find(kept.name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const ckpt::Value* peak = kept.peak.empty() ? nullptr : part.find(kept.peak);
  if (peak != nullptr) {
    return *peak;
  }
  const ckpt::Dict* counter = value->as_dict();
  return counter == nullptr ? std::optional(*value) : milestones_of(*counter);
}

std::optional<double> number_in(const std::optional<ckpt::Value>& value) {
  if (!value) {
    return std::nullopt;
  }
  const auto number = value->number();
  return number ? std::optional(*number) : std::nullopt;
}

/// What was set for most of the model: scripts lower the rate of some groups,
/// and spare some from decay.
std::optional<ckpt::Value> largest_value(
    const std::vector<ckpt::Value>& parts,
    const KeptSetting& kept) {
  std::optional<ckpt::Value> largest;
  for (const ckpt::Value& part : parts) {
    std::optional<ckpt::Value> value = kept_value(part, kept);
    if (value && value->as_tensor() != nullptr) {
      value = ckpt::Value(number_of(&*value));
    }
    const bool is_larger =
        number_in(value) && largest && number_in(largest) < number_in(value);
    if (is_larger || !largest) {
      largest = std::move(value);
    }
  }
  return largest;
}

ckpt::Value args_of(const ckpt::Value& root, const ckpt::Value& ours) {
  ckpt::Value args = ckpt::Value::dict({});
  if (const std::string_view model = model_name(root); !model.empty()) {
    args.set("model", model);
  }
  for (const KeptSetting& kept : kKept) {
    if (const auto value = largest_value(parts_of(ours, kept.part), kept)) {
      args.set(std::string(kept.key), *value);
    }
  }
  return args;
}

/// A file without a schedule may not say the first rate; the rate of now is
/// the best guess then.
void guess_rate(RunCheckpoint& checkpoint) {
  constexpr KeptSetting kNow{"lr", kOptimizer, "lr"};
  const auto lr = largest_value(parts_of(checkpoint.root, kOptimizer), kNow);
  const auto rate = number_in(lr);
  if (!lr || !rate || checkpoint.root.find("args")->find("lr") != nullptr) {
    return;
  }
  checkpoint.guessed_args.set("lr", *lr);
  checkpoint.notes.push_back(format(
      "the optimizer does not say its first learning rate (initial_lr): it is "
      "what --lr says, or else the rate of now, {}",
      shortest(*rate)));
}

/// Why the file's best value is not the best accuracy; empty if it may be.
std::string why_no_accuracy(const ckpt::Value& root, const ckpt::Value& best) {
  if (!has_accuracy(root)) {
    return format(
        "is another metric ({})",
        escape(arg_of(root, "eval_metric")));
  }
  const double number = number_in(best).value_or(NAN);
  return best.is_none() || std::isfinite(number) ? "" : "is no finite number";
}

/// What the log says of a file that is not ours. `average`: its key there.
std::vector<std::string> notes_of(
    const ckpt::Value& root,
    const Layout& layout,
    std::int64_t epochs,
    std::string_view average) {
  std::vector<std::string> notes{format(
      "a checkpoint of another program ({} layout): {} done",
      layout.name,
      counted(static_cast<std::uint64_t>(epochs), "epoch is", "epochs are"))};
  if (!average.empty()) {
    notes.push_back(format(
        "its average of the weights ('{}') goes on with --ema, and is left "
        "without",
        average));
  }
  const ckpt::Value* scheduler = scheduler_of(root, layout);
  std::vector<std::string> unused;
  for (const auto& [key, value] : root.as_dict()->items) {
    const std::string name(key.text());
    const bool is_best = name == layout.best;
    const std::string why = is_best ? why_no_accuracy(root, value)
                            : name.starts_with("best_") ? "is another metric"
                                                        : "";
    if (!why.empty()) {
      notes.push_back(
          format("'{}' {}: the best accuracy begins fresh", escape(name), why));
      continue;
    }
    const bool is_used = is_best || name == layout.weights || name == average ||
                         &value == optimizer_of(root) || &value == scheduler ||
                         std::ranges::find(kFacts, name) != kFacts.end();
    if (!is_used) {
      unused.push_back(format("'{}'", escape(name)));
    }
  }
  if (!unused.empty()) {
    notes.push_back(format("not used: {}", join(unused, ", ")));
  }
  return notes;
}

} // namespace

RunCheckpoint to_run_checkpoint(
    const ckpt::Value& root,
    const std::string& path) {
  const Layout& layout = layout_of(root, path);
  if (&layout == kLayouts.data()) {
    return {.root = root, .layout = std::string(layout.name), .is_ours = true};
  }
  const std::int64_t epoch = next_epoch(*root.find(kEpoch), layout, path);
  ckpt::Value ours = ckpt::Value::dict(
      {{"epoch", epoch},
       {"state_dict", *root.find(layout.weights)},
       {"best_acc1",
        has_accuracy(root) ? number_of(root.find(layout.best)) : 0.0},
       {"optimizer", *optimizer_of(root)}});
  if (const ckpt::Value* scheduler = scheduler_of(root, layout)) {
    ours.set("scheduler", *scheduler);
  }
  const auto average = foreign_average(root);
  if (average) {
    ours.set("state_dict_ema", average->weights);
    ours.set("ema_updates", average->updates);
  }
  ours.set("args", args_of(root, ours));
  RunCheckpoint checkpoint{
      .root = ours,
      .layout = std::string(layout.name),
      .notes = notes_of(root, layout, epoch, average ? average->key : "")};
  guess_rate(checkpoint);
  return checkpoint;
}

} // namespace lockstep::train
