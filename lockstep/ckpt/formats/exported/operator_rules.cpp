// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/exported/operator_rules.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/strings.h"

namespace lockstep::ckpt {
namespace {

/// An operator of ATen that a file must not call unasked.
struct RefusedRow {
  std::string_view name = {};
  std::string_view reason = {};
};

constexpr std::string_view kUnchecked = "it does not check its indices";
constexpr std::string_view kUncheckedSizes = "it does not check its sizes";
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
    RefusedRow{"_index_put_impl", kUnchecked}, // with `unsafe`
    RefusedRow{"_index_put_impl_", kUnchecked},
    RefusedRow{"_unsafe_masked_index", kUnchecked},
    RefusedRow{"_unsafe_masked_index_put_accumulate", kUnchecked},
    RefusedRow{"_sparse_coo_tensor_unsafe", kUnchecked},
    RefusedRow{"_sparse_compressed_tensor_unsafe", kUnchecked},
    RefusedRow{"_sparse_csr_tensor_unsafe", kUnchecked},
    RefusedRow{"_sparse_csc_tensor_unsafe", kUnchecked},
    RefusedRow{"_sparse_bsr_tensor_unsafe", kUnchecked},
    RefusedRow{"_sparse_bsc_tensor_unsafe", kUnchecked},
    RefusedRow{"mkldnn_rnn_layer", kUncheckedSizes},
    RefusedRow{"mkldnn_rnn_layer_backward", kUncheckedSizes},
    RefusedRow{"_nested_view_from_buffer", kUnchecked},
    RefusedRow{"_nested_view_from_buffer_copy", kUnchecked},
    RefusedRow{"_nested_view_from_jagged", kUnchecked},
    RefusedRow{"_nested_view_from_jagged_copy", kUnchecked},
};

// Of PyTorch itself, and nothing but arithmetic.
constexpr auto kOwnSpaces = std::to_array<std::string_view>(
    {"aten", "prims", "rngprims", "quantized_decomposed"});

// They run graphs of the file.
constexpr auto kGraphOperators = std::to_array<std::string_view>({
    "associative_scan",
    "auto_functionalized",
    "auto_functionalized_v2",
    "cond",
    "flex_attention",
    "flex_attention_backward",
    "foreach_map",
    "hints_wrapper",
    "invoke_subgraph",
    "map_impl",
    "out_dtype",
    "run_const_graph",
    "scan",
    "strict_mode",
    "tag_activation_checkpoint",
    "while_loop",
    "while_loop_stack_output",
    "with_effects",
    "wrap",
    "wrap_activation_checkpoint",
    "wrap_with_autocast",
    "wrap_with_set_grad_enabled",
});

constexpr auto kNumberOperators = std::to_array<std::string_view>({
    "abs", "add",    "and_", "eq",      "floordiv", "ge",     "getitem",
    "gt",  "index",  "inv",  "invert",  "le",       "lshift", "lt",
    "mod", "mul",    "ne",   "neg",     "not_",     "or_",    "pos",
    "pow", "rshift", "sub",  "truediv", "truth",    "xor",
});

bool contains(std::span<const std::string_view> texts, std::string_view text) {
  return std::ranges::find(texts, text) != texts.end();
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word_char(char c) {
  return is_letter(c) || is_digit(c);
}

// Words of "torch.ops.aten.add.Tensor"; empty if one is none.
std::vector<std::string> words_of(std::string_view target) {
  std::vector<std::string> words = split(target, '.');
  const bool is_plain = std::ranges::all_of(words, [](const std::string& word) {
    return !word.empty() && word.find("__") == std::string::npos &&
           std::ranges::all_of(word, is_word_char);
  });
  return is_plain ? words : std::vector<std::string>();
}

TargetKind judge_torch_operator(const std::vector<std::string>& words) {
  const std::string& space = words[2];
  if (space == "higher_order") {
    return words.size() == 4 && contains(kGraphOperators, words[3])
               ? TargetKind::kKnown
               : TargetKind::kForeign;
  }
  if (words.size() > 5) {
    return TargetKind::kDangerous; // an attribute of an operator
  }
  if (!contains(kOwnSpaces, space)) {
    return TargetKind::kForeign;
  }
  return space == "aten" && !refused_operator(words[3]).empty()
             ? TargetKind::kDangerous
             : TargetKind::kKnown;
}

} // namespace

OperatorName operator_name(std::string_view target) {
  constexpr std::string_view kFront = "torch.ops.";
  const std::string_view path =
      target.starts_with(kFront) ? target.substr(kFront.size()) : "";
  const std::size_t first = path.find('.');
  const std::size_t last = path.rfind('.');
  if (first == std::string_view::npos || first == last) {
    return {};
  }
  return {
      .space = path.substr(0, first),
      .name = path.substr(first + 1, last - first - 1),
      .overload = path.substr(last + 1)};
}

std::string_view refused_operator(std::string_view name) {
  const auto* row = std::ranges::find(kRefused, name, &RefusedRow::name);
  return row == kRefused.end() ? std::string_view() : row->reason;
}

TargetKind judge_target(std::string_view target) {
  const std::vector<std::string> words = words_of(target);
  if (words.empty()) {
    // Python takes a text that begins otherwise for an unknown operator.
    const bool is_looked_up = target.starts_with("torch") ||
                              target.starts_with("_operator") ||
                              target.starts_with("math");
    return is_looked_up ? TargetKind::kDangerous : TargetKind::kForeign;
  }
  if (words[0] == "_operator") {
    return words.size() == 2 && contains(kNumberOperators, words[1])
               ? TargetKind::kKnown
               : TargetKind::kDangerous;
  }
  if (words[0] == "math") {
    return words.size() == 2 ? TargetKind::kKnown : TargetKind::kDangerous;
  }
  if (!target.starts_with("torch") && !target.starts_with("_operator") &&
      !target.starts_with("math")) {
    return TargetKind::kForeign;
  }
  if (words[0] == "torch" && words.size() >= 4 && words[1] == "ops") {
    return judge_torch_operator(words);
  }
  const bool is_size =
      words[0] == "torch" && words.size() == 2 && words[1].starts_with("sym_");
  const bool is_predispatch = target.starts_with(
                                  "torch._functorch.predispatch."
                                  "_") &&
                              words.size() == 4;
  return is_size || is_predispatch ? TargetKind::kKnown
                                   : TargetKind::kDangerous;
}

} // namespace lockstep::ckpt
