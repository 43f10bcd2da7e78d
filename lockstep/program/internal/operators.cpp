// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/operators.h"

#include <algorithm>
#include <array>

#include "lockstep/base/strings.h"

namespace lockstep::program {
namespace {

constexpr std::string_view kFront = "torch.ops.";
constexpr std::string_view kSafeNamespace = "aten";

/// An operator of ATen that a file must not call unasked.
struct RefusedRow {
  std::string_view name = {};
  std::string_view reason = {};
};

constexpr std::string_view kUnchecked = "it does not check its indices";
constexpr std::string_view kFiles = "it maps or makes files";
constexpr std::string_view kForeign = "it changes what memory a tensor has";
constexpr std::string_view kProcess = "it changes the state of the process";

constexpr std::array kRefused = {
    RefusedRow{"from_file", kFiles},
    RefusedRow{"set", kForeign},
    RefusedRow{"set_", kForeign},
    RefusedRow{"set_data", kForeign},
    RefusedRow{"record_stream", kProcess},
    RefusedRow{"_print", kProcess},
    RefusedRow{"_cufft_set_plan_cache_max_size", kProcess},
    RefusedRow{"_unsafe_index", kUnchecked},
    RefusedRow{"_unsafe_index_put", kUnchecked},
    RefusedRow{"_unsafe_masked_index", kUnchecked},
    RefusedRow{"_unsafe_masked_index_put_accumulate", kUnchecked},
    RefusedRow{"_sparse_coo_tensor_unsafe", kUnchecked},
    RefusedRow{"_sparse_compressed_tensor_unsafe", kUnchecked},
    RefusedRow{"_sparse_csr_tensor_unsafe", kUnchecked},
    RefusedRow{"_sparse_csc_tensor_unsafe", kUnchecked},
    RefusedRow{"_sparse_bsr_tensor_unsafe", kUnchecked},
    RefusedRow{"_sparse_bsc_tensor_unsafe", kUnchecked},
    RefusedRow{"_nested_view_from_buffer", kUnchecked},
    RefusedRow{"_nested_view_from_buffer_copy", kUnchecked},
    RefusedRow{"_nested_view_from_jagged", kUnchecked},
    RefusedRow{"_nested_view_from_jagged_copy", kUnchecked},
};

constexpr std::array kFlags = {
    FlagRow{"aten::batch_norm", "training"},
    FlagRow{"aten::native_batch_norm", "training"},
    FlagRow{"aten::_native_batch_norm_legit", "training"},
    FlagRow{"aten::_native_batch_norm_legit_functional", "training"},
    FlagRow{"aten::cudnn_batch_norm", "training"},
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
};

constexpr std::array<std::string_view, 3> kUnswitchable = {
    "aten::_batch_norm_with_update",
    "aten::_batch_norm_with_update_functional",
    "aten::_native_batch_norm_legit_no_training"};

bool contains(std::span<const std::string> texts, std::string_view text) {
  return std::ranges::find(texts, text) != texts.end();
}

} // namespace

FoundOperator find_operator(
    std::string_view target,
    std::span<const std::string> allowed) {
  const std::string_view path =
      target.starts_with(kFront) ? target.substr(kFront.size()) : "";
  const std::size_t first = path.find('.');
  const std::size_t last = path.rfind('.');
  if (first == std::string_view::npos || first == last) {
    return {.problem = "unknown"};
  }
  const std::string space(path.substr(0, first));
  const std::string name(path.substr(first + 1, last - first - 1));
  const std::string_view overload = path.substr(last + 1);
  const bool is_named =
      contains(allowed, space) || contains(allowed, space + "." + name);
  if (space != kSafeNamespace && !is_named) {
    return {
        .problem = format(
            "not of ATen: name '{}' in ProgramOptions::allow, and the library "
            "that has it",
            space)};
  }
  const auto* refused = std::ranges::find(kRefused, name, &RefusedRow::name);
  if (refused != kRefused.end() && !contains(allowed, space + "." + name)) {
    return {
        .problem = format(
            "refused: {}; '{}.{}' in ProgramOptions::allow takes it",
            refused->reason,
            space,
            name)};
  }
  auto handle = c10::Dispatcher::singleton().findSchema(
      {space + "::" + name,
       overload == "default" ? std::string() : std::string(overload)});
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

bool is_unswitchable(const c10::FunctionSchema& schema) {
  return std::ranges::find(kUnswitchable, std::string_view(schema.name())) !=
         kUnswitchable.end();
}

} // namespace lockstep::program
