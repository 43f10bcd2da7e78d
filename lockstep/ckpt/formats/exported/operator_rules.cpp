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
  /// Empty for all.
  std::string_view overload = {};
};

constexpr std::string_view kUnchecked = "it does not check its arguments";
constexpr std::string_view kFiles = "it maps or makes files";
constexpr std::string_view kForeign = "it changes what memory a tensor has";
constexpr std::string_view kProcess = "it changes the state of the process";
constexpr std::string_view kPrivate =
    "it is private to PyTorch and leaves checks to its callers";
constexpr std::string_view kBackward =
    "it is the backward of another one and leaves checks to it";

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
    RefusedRow{"sparse_compressed_tensor", kUnchecked},
    RefusedRow{"sparse_csr_tensor", kUnchecked},
    RefusedRow{"sparse_csc_tensor", kUnchecked},
    RefusedRow{"sparse_bsr_tensor", kUnchecked},
    RefusedRow{"sparse_bsc_tensor", kUnchecked},
    RefusedRow{"_nested_view_from_buffer", kUnchecked},
    RefusedRow{"_nested_view_from_buffer_copy", kUnchecked},
    RefusedRow{"_nested_view_from_jagged", kUnchecked},
    RefusedRow{"_nested_view_from_jagged_copy", kUnchecked},
    RefusedRow{"_reshape_alias", kUnchecked},
    RefusedRow{"_reshape_alias_copy", kUnchecked},
    RefusedRow{"ctc_loss", kUnchecked},
    // Packed sequences, which torch.export does not take.
    RefusedRow{"gru", kUnchecked, "data"},
    RefusedRow{"lstm", kUnchecked, "data"},
    RefusedRow{"rnn_relu", kUnchecked, "data"},
    RefusedRow{"rnn_tanh", kUnchecked, "data"},
    RefusedRow{"quantized_gru_cell", kUnchecked},
    RefusedRow{"quantized_lstm_cell", kUnchecked},
    RefusedRow{"quantized_rnn_relu_cell", kUnchecked},
    RefusedRow{"quantized_rnn_tanh_cell", kUnchecked},
    RefusedRow{"segment_reduce", kUnchecked},
    RefusedRow{"fused_moving_avg_obs_fake_quant", kUnchecked},
    RefusedRow{"batch_norm_update_stats", kUnchecked},
    RefusedRow{"mkldnn_rnn_layer", kUnchecked},
};

// Python's signs: "x & y" is aten.__and__.
constexpr auto kSigns = std::to_array<std::string_view>(
    {"__and__",
     "__iand__",
     "__or__",
     "__ior__",
     "__xor__",
     "__ixor__",
     "__lshift__",
     "__ilshift__",
     "__rshift__",
     "__irshift__"});

// Private ones that exports of nets have, and that check what they are given,
// or that a program checks before it calls them.
constexpr auto kPrivateAllowed = std::to_array<std::string_view>({
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
    "_addmm_activation",
    "_aminmax",
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "_batch_norm_impl_index",
    "_batch_norm_with_update",
    "_batch_norm_with_update_functional",
    "_cast_Double",
    "_cast_Float",
    "_cast_Half",
    "_cast_Int",
    "_cast_Long",
    "_cdist_forward",
    "_conj",
    "_conj_copy",
    "_conj_physical",
    "_convolution",
    "_convolution_mode",
    "_dim_arange",
    "_embedding_bag",
    "_embedding_bag_forward_only",
    "_euclidean_dist",
    "_fft_c2c",
    "_fft_c2r",
    "_fft_r2c",
    "_functional_assert_async",
    "_functional_assert_scalar",
    "_functional_sym_constrain_range",
    "_functional_sym_constrain_range_for_size",
    "_grouped_mm",
    "_int_mm",
    "_is_all_true",
    "_is_any_true",
    "_linalg_check_errors",
    "_linalg_det",
    "_linalg_eigh",
    "_linalg_slogdet",
    "_linalg_solve_ex",
    "_linalg_svd",
    "_local_scalar_dense",
    "_log_softmax",
    "_logcumsumexp",
    "_lu_with_info",
    "_masked_softmax",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
    "_native_multi_head_attention",
    "_neg_view",
    "_neg_view_copy",
    "_pack_padded_sequence",
    "_pad_circular",
    "_pad_enum",
    "_pad_packed_sequence",
    "_pdist_forward",
    "_prelu_kernel",
    "_safe_softmax",
    "_sample_dirichlet",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_mm",
    "_shape_as_tensor",
    "_softmax",
    "_sparse_mm",
    "_standard_gamma",
    "_to_copy",
    "_transformer_encoder_layer_fwd",
    "_trilinear",
    "_unique",
    "_unique2",
    "_unsafe_view",
    "_upsample_bicubic2d_aa",
    "_upsample_bilinear2d_aa",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "_weight_norm",
    "_weight_norm_interface",
});

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

const RefusedRow* find_refused(
    std::string_view name,
    std::string_view overload) {
  const auto* row = std::ranges::find_if(kRefused, [&](const RefusedRow& each) {
    return each.name == name &&
           (each.overload.empty() || each.overload == overload);
  });
  return row == kRefused.end() ? nullptr : row;
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
    return !word.empty() &&
           (word.find("__") == std::string::npos || contains(kSigns, word)) &&
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
  const std::string overload = words.size() == 5 ? words[4] : "";
  if (space != "aten" || refused_operator(words[3], overload).empty()) {
    return TargetKind::kKnown;
  }
  return find_refused(words[3], overload) != nullptr ? TargetKind::kDangerous
                                                     : TargetKind::kForeign;
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

std::string_view refused_operator(
    std::string_view name,
    std::string_view overload) {
  if (const RefusedRow* row = find_refused(name, overload)) {
    return row->reason;
  }
  if (name.find("backward") != std::string_view::npos) {
    return kBackward;
  }
  const bool is_private = name.starts_with('_') && !contains(kSigns, name) &&
                          !contains(kPrivateAllowed, name);
  return is_private ? kPrivate : std::string_view();
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
