// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/operators.h"

#include <algorithm>
#include <array>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/exported/operator_rules.h"

namespace lockstep::program {
namespace {

constexpr std::string_view kSafeNamespace = "aten";

constexpr std::array kFlags = {
    // Without running statistics a norm always takes those of the batch.
    FlagRow{"aten::batch_norm", "training", "running_mean"},
    FlagRow{"aten::native_batch_norm", "training", "running_mean"},
    FlagRow{"aten::_native_batch_norm_legit", "training", "running_mean"},
    FlagRow{
        "aten::_native_batch_norm_legit_functional",
        "training",
        "running_mean"},
    FlagRow{"aten::cudnn_batch_norm", "training", "running_mean"},
    FlagRow{"aten::instance_norm", "use_input_stats", "running_mean"},
    FlagRow{"aten::rrelu", "training"},
    FlagRow{"aten::rrelu_", "training"},
    FlagRow{"aten::rrelu_with_noise", "training"},
    FlagRow{"aten::rrelu_with_noise_functional", "training"},
    FlagRow{"aten::dropout", "train"},
    FlagRow{"aten::dropout_", "train"},
    FlagRow{"aten::native_dropout", "train"},
    FlagRow{"aten::alpha_dropout", "train"},
    FlagRow{"aten::alpha_dropout_", "train"},
    FlagRow{"aten::feature_dropout", "train"},
    FlagRow{"aten::feature_dropout_", "train"},
    FlagRow{"aten::feature_alpha_dropout", "train"},
    FlagRow{"aten::feature_alpha_dropout_", "train"},
    FlagRow{"aten::lstm", "train"},
    FlagRow{"aten::gru", "train"},
    FlagRow{"aten::rnn_tanh", "train"},
    FlagRow{"aten::rnn_relu", "train"},
    FlagRow{"aten::scaled_dot_product_attention", "dropout_p"},
    FlagRow{"aten::_scaled_dot_product_flash_attention_for_cpu", "dropout_p"},
    FlagRow{"aten::_scaled_dot_product_attention_math", "dropout_p"},
    FlagRow{"aten::_scaled_dot_product_flash_attention", "dropout_p"},
    FlagRow{"aten::_scaled_dot_product_efficient_attention", "dropout_p"},
    FlagRow{"aten::_scaled_dot_product_cudnn_attention", "dropout_p"},
};

constexpr std::array<std::string_view, 2> kUnswitchable = {
    "aten::_batch_norm_with_update",
    "aten::_batch_norm_with_update_functional"};

// What an export in eval mode has in place of a flag that is off.
constexpr std::string_view kNeverTrains =
    "aten::_native_batch_norm_legit_no_training";

bool contains(std::span<const std::string> texts, std::string_view text) {
  return std::ranges::find(texts, text) != texts.end();
}

} // namespace

FoundOperator find_operator(
    std::string_view target,
    std::span<const std::string> allowed) {
  const ckpt::OperatorName parts = ckpt::operator_name(target);
  if (parts.space.empty()) {
    return {.problem = "unknown"};
  }
  const std::string space(parts.space);
  const std::string name(parts.name);
  const bool is_named =
      contains(allowed, space) || contains(allowed, space + "." + name);
  if (space != kSafeNamespace && !is_named) {
    return {
        .problem = format(
            "not of ATen: name '{}' in ProgramOptions::allow, and the library "
            "that has it",
            space)};
  }
  const std::string_view refused =
      space == kSafeNamespace ? ckpt::refused_operator(name, parts.overload)
                              : std::string_view();
  if (!refused.empty() && !contains(allowed, space + "." + name)) {
    return {
        .problem = format(
            "refused: {}; '{}.{}' in ProgramOptions::allow takes it",
            refused,
            space,
            name)};
  }
  auto handle = c10::Dispatcher::singleton().findSchema(
      {space + "::" + name,
       parts.overload == "default" ? std::string()
                                   : std::string(parts.overload)});
  return handle ? FoundOperator{.handle = std::move(handle)}
                : FoundOperator{.problem = "unknown"};
}

const FlagRow* find_flag(const c10::FunctionSchema& schema) {
  const auto* row = std::ranges::find(
      kFlags,
      std::string_view(schema.name()),
      &FlagRow::name);
  return row == kFlags.end() ? nullptr : &*row;
}

bool never_trains(const c10::FunctionSchema& schema) {
  return schema.name() == kNeverTrains;
}

bool is_unswitchable(const c10::FunctionSchema& schema) {
  return std::ranges::find(kUnswitchable, std::string_view(schema.name())) !=
         kUnswitchable.end();
}

} // namespace lockstep::program
