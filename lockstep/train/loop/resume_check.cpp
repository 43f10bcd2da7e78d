// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/resume_check.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/optimizers.h"
#include "lockstep/program/internal/program_facts.h"
#include "lockstep/train/checkpoints/config_file.h"
#include "lockstep/train/step/named_model.h"
#include "lockstep/train/step/schedule.h"

namespace lockstep::train {
namespace {

/// Keys of `args` whose values live on in the optimizer and the schedule.
constexpr std::array<std::string_view, 18> kOfTheCheckpoint{
    "lr",
    "momentum",
    "weight_decay",
    "nesterov",
    "fused",
    "lr_step_size",
    "lr_gamma",
    "lr_milestones",
    "lr_patience",
    "min_lr",
    "warmup_epochs",
    "warmup_steps",
    "swa_lr",
    "layer_decay",
    "param_groups",
    "no_decay_norms",
    "initial_checkpoint",
    "partial"};

/// Keys of `args` with which alone a run can go on.
constexpr std::array<std::string_view, 3> kFixed{
    "opt",
    "lr_scheduler",
    "img_size"};

[[noreturn]] void refuse(
    const std::string& path,
    std::string_view detail,
    std::string message,
    std::string hint) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.resume",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = path,
       .detail = std::string(detail)});
}

bool is_of_the_checkpoint(const Flag& flag) {
  return std::ranges::find(kOfTheCheckpoint, flag.key()) !=
         kOfTheCheckpoint.end();
}

std::string shown(const std::string& value) {
  return value.empty() ? "none" : escape(value);
}

void refuse_other_model(const TrainConfig& config, const Resumption& from) {
  const ckpt::Value& root = from.checkpoint.root;
  const ckpt::Value* arch = root.find("arch");
  const ckpt::Value* args = root.find("args");
  if (arch == nullptr && args != nullptr) {
    arch = args->find("model");
  }
  const std::string_view name = arch == nullptr ? "" : arch->text();
  if (name.starts_with(kOwnPrefix) && name != config.model) {
    refuse(
        from.path,
        "E_OTHER_MODEL",
        format(
            "the checkpoint is of a program's model '{}', the run is of '{}'",
            escape(name),
            escape(config.model)),
        "go on in that program; a class that has a new name can keep the old "
        "one, torch::nn::Module(\"Net\"); a new run may begin with "
        "--initial-checkpoint");
  }
  // Of a program the graph decides, wherever its file lies.
  const bool are_programs =
      is_program_file(name) && is_program_file(config.model);
  if (is_named_model(name) && !config.model.starts_with(kOwnPrefix) &&
      name != config.model && !are_programs) {
    refuse(
        from.path,
        "E_OTHER_MODEL",
        format(
            "the checkpoint is arch '{}', the run asks for '{}'",
            name,
            escape(config.model)),
        "leave --model out to go on; a new run may begin with "
        "--initial-checkpoint");
  }
}

/// How a part begins that the checkpoint lacks.
std::string fresh_start(std::string_view key, const Cursor& cursor) {
  if (key == "scheduler") {
    return format("it begins at epoch {} of its schedule", cursor.epoch + 1);
  }
  return key == "rng"        ? "random numbers begin fresh, as --seed says"
         : key == "lockstep" ? "how its numbers were computed is not known"
         : key == kWarmupKey ? "it is over"
                             : "it begins fresh";
}

/// "no scheduler in the file: it begins at epoch 3 of its schedule".
std::string fresh_text(const std::string& key, const Cursor& cursor) {
  return format("no {} in the file: {}", key, fresh_start(key, cursor));
}

} // namespace

void refuse_contradictions(TrainConfig& config, const Resumption& from) {
  refuse_other_model(config, from);
  const ckpt::Value* args = from.checkpoint.root.find("args");
  if (args == nullptr) {
    return;
  }
  TrainConfig saved = config;
  apply_args(saved, *args);
  if (config.img_size == 0) {
    config.img_size = saved.img_size;
  }
  for (const std::string_view key : kFixed) {
    const Flag& flag = *find_key(key);
    const std::string was = get_flag(saved, flag);
    const std::string now = get_flag(config, flag);
    // Whether a program's own part takes a named one's state, that part says.
    const bool is_own =
        now.starts_with(kOwnPrefix) && !was.starts_with(kOwnPrefix);
    if (was != now && was != "0" && !is_own) {
      refuse(
          from.path,
          "E_OTHER_SETTING",
          format(
              "the checkpoint was trained with --{0} {1}, the run asks for "
              "--{0} {2}",
              flag.name,
              escape(was),
              escape(now)),
          format(
              "leave --{} out to go on; a new run may begin with "
              "--initial-checkpoint",
              flag.name));
    }
  }
}

std::string state_hint(const Resumption& from, const TrainConfig& config) {
  const ckpt::Value& root = from.checkpoint.root;
  const ckpt::Value* optimizer = root.find("optimizer");
  const std::string new_run = format(
      "--initial-checkpoint {} starts a new run from its weights",
      from.path);
  if (optimizer == nullptr || optimizer->find("param_groups") == nullptr) {
    return "the checkpoint has no state of an optimizer; " + new_run;
  }
  const auto flag_for = [&](std::string_view flag,
                            const std::string& saved,
                            const std::string& asked,
                            const std::vector<std::string>& known) {
    // Older files do not tell Adam from AdamW.
    if (saved.empty() || asked.starts_with(saved) ||
        asked.starts_with(kOwnPrefix)) {
      return std::string();
    }
    return std::ranges::find(known, saved) != known.end()
               ? format("--{} {} goes on with it", flag, saved)
               : format("no --{} goes on with {}; {}", flag, saved, new_run);
  };
  const std::string hint = flag_for(
      "opt",
      lower_case(saved_optimizer(*optimizer)),
      config.opt,
      optimizer_names());
  const ckpt::Value* scheduler = root.find("scheduler");
  return !hint.empty() || scheduler == nullptr
             ? hint
             : flag_for(
                   "lr-scheduler",
                   saved_scheduler(*scheduler),
                   config.lr_scheduler,
                   scheduler_names());
}

Error naming(Error error, const Resumption& from, const TrainConfig& config) {
  if (error.path.empty()) {
    error.path = from.path;
  }
  const std::string hint = state_hint(from, config);
  if (error.op == "optim.load" && !hint.empty()) {
    error.hint = hint;
  }
  if (error.hint.empty()) {
    error.hint = error.op == "tensor.load"
                     ? "--model must be the checkpoint's"
                     : "--model, --opt, --lr-scheduler must be the "
                       "checkpoint's";
  }
  if (error.detail.empty()) {
    error.detail = "E_BAD_STATE";
  }
  return error;
}

std::vector<StartLine> take_settings(
    TrainConfig& config,
    const ckpt::Value& args,
    const SettingSources& sources) {
  TrainConfig saved = config;
  apply_args(saved, args);
  std::vector<StartLine> lines;
  for (const Flag& flag : flag_table()) {
    const std::string was = get_flag(saved, flag);
    const std::string now = get_flag(config, flag);
    if (was == now || !flag.is_saved) {
      continue;
    }
    if (is_of_the_checkpoint(flag)) {
      set_flag(config, flag, was);
      lines.push_back(
          {LogLevel::kWarning,
           format(
               "--{} {}: ignored, the run goes on with the checkpoint's {}",
               flag.name,
               shown(now),
               shown(was))});
    } else {
      lines.push_back(
          {LogLevel::kInfo,
           format(
               "--{} {} (was {}): {}",
               flag.name,
               shown(now),
               shown(was),
               "from " + sources.of(flag))});
    }
  }
  return lines;
}

std::vector<std::string> check_resume(
    const ResumeCheck& check,
    const TrainConfig& config) {
  const std::string order = to_string(check.identity.order());
  const bool is_inside_epoch = check.cursor.samples > 0;
  if (is_inside_epoch && !order.empty()) {
    refuse(
        check.path,
        "E_OTHER_SAMPLES",
        format(
            "epoch {} cannot go on with other samples; {}",
            check.cursor.epoch + 1,
            order),
        "keep them, or resume from a checkpoint after an epoch");
  }
  std::vector<std::string> reasons;
  for (const std::string& text :
       {to_string(check.identity.numerics()), order}) {
    if (!text.empty()) {
      reasons.push_back(text);
    }
  }
  std::vector<std::string> warnings;
  warnings.reserve(check.missing.size() + 1);
  for (const std::string& key : check.missing) {
    warnings.push_back(fresh_text(key, check.cursor));
  }
  if (!reasons.empty()) {
    warnings.push_back(
        "the bits may differ from those of a run without interruption; " +
        join(reasons, "; "));
  }
  if (config.resume_exact && !warnings.empty()) {
    if (!check.missing.empty()) {
      reasons.push_back(
          format("the checkpoint has no {}", join(check.missing, ", ")));
    }
    refuse(
        check.path,
        "E_NOT_EXACT",
        "the bits cannot be those of one run; " + join(reasons, "; "),
        "without --resume-exact the run goes on all the same");
  }
  return warnings;
}

} // namespace lockstep::train
