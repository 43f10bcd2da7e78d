// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/resume_check.h"

#include <array>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/train/config_file.h"

namespace lockstep::train {
namespace {

/// Keys of `args` whose values live on in the optimizer and the schedule.
constexpr std::array<std::string_view, 9> kOfTheCheckpoint{
    "lr",
    "momentum",
    "weight_decay",
    "nesterov",
    "fused",
    "lr_step_size",
    "lr_gamma",
    "lr_milestones",
    "initial_checkpoint"};

[[noreturn]] void
refuse(const ResumeCheck& check, std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.resume",
       .message = std::move(message),
       .hint = std::move(hint),
       .path = check.path});
}

} // namespace

std::vector<std::string> take_settings(
    TrainConfig& config,
    const ckpt::Value& args) {
  TrainConfig saved = config;
  apply_args(saved, args);
  std::vector<std::string> warnings;
  for (const std::string_view key : kOfTheCheckpoint) {
    const Flag& flag = *find_key(key);
    const std::string was = get_flag(saved, flag);
    const std::string now = get_flag(config, flag);
    if (was != now) {
      warnings.push_back(format(
          "--{} {} has no effect: the run goes on with the checkpoint's '{}'",
          flag.name,
          escape(now),
          escape(was)));
      set_flag(config, flag, was);
    }
  }
  return warnings;
}

std::string check_resume(const ResumeCheck& check, bool exact) {
  const std::string order = to_string(check.identity.order());
  const bool is_inside_epoch = check.cursor.samples > 0;
  if (is_inside_epoch && !order.empty()) {
    refuse(
        check,
        format(
            "epoch {} cannot go on with other samples; {}",
            check.cursor.epoch,
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
  if (!check.missing.empty()) {
    reasons.push_back(
        format("the checkpoint has no {}", join(check.missing, ", ")));
  }
  if (reasons.empty()) {
    return {};
  }
  if (exact) {
    refuse(
        check,
        "the bits cannot be those of one run; " + join(reasons, "; "),
        "without --resume-exact the run goes on all the same");
  }
  return "the bits may differ from those of a run without interruption; " +
         join(reasons, "; ");
}

} // namespace lockstep::train
