// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/program/internal/checked_operators.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

namespace lockstep::program {
namespace {

using Stack = torch::jit::Stack;

void check_numbers(
    const c10::IValue& value,
    std::int64_t expected,
    std::string_view what) {
  if (!value.isTensor() || !value.toTensor().defined()) {
    return;
  }
  const at::Tensor& tensor = value.toTensor();
  TORCH_CHECK(
      tensor.dim() == 1 && tensor.size(0) == expected,
      what,
      " of a norm: expected ",
      expected,
      " numbers, got the sizes ",
      tensor.sizes());
}

// (input, weight, bias, running_mean, running_var, ...); without running ones
// flags and numbers follow.
void check_batch_norm(const Stack& stack) {
  constexpr std::array<std::string_view, 4> kNames = {
      "the weight",
      "the bias",
      "the running mean",
      "the running variance"};
  const at::Tensor& input = stack[0].toTensor();
  TORCH_CHECK(
      input.dim() >= 2,
      "a batch norm takes at least 2 dimensions, got ",
      input.dim());
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    check_numbers(stack[i + 1], input.size(1), kNames.at(i));
  }
}

// (v, g, dim): one norm for each index of a dimension, or for all of them.
void check_weight_norm(const Stack& stack) {
  const at::Tensor& v = stack[0].toTensor();
  const at::Tensor& g = stack[1].toTensor();
  const std::int64_t dim = stack[2].toInt();
  TORCH_CHECK(
      dim >= -1 && dim < std::max<std::int64_t>(v.dim(), 1),
      "a weight norm has no dimension ",
      dim);
  const std::int64_t expected = dim < 0 || v.dim() == 0 ? 1 : v.size(dim);
  TORCH_CHECK(
      v.numel() > 0 && g.numel() == expected &&
          g.scalar_type() == v.scalar_type() && g.device() == v.device(),
      "a weight norm: expected ",
      expected,
      " norms, got ",
      g.numel());
}

// (self, dims, ...): transforms trust the dimensions.
void check_dims(const Stack& stack) {
  const at::Tensor& self = stack[0].toTensor();
  const auto dims = stack[1].toIntVector();
  const bool are_good = std::ranges::all_of(dims, [&self](std::int64_t dim) {
    return dim >= 0 && dim < self.dim() && self.size(dim) > 0;
  });
  TORCH_CHECK(
      are_good && !dims.empty() &&
          std::set(dims.begin(), dims.end()).size() == dims.size(),
      "a Fourier transform over the dimensions ",
      at::IntArrayRef(dims),
      " of ",
      self.sizes());
}

// (self, dims, normalization, last size): half of the last one is given.
void check_half_complex(const Stack& stack) {
  check_dims(stack);
  const std::int64_t given =
      stack[0].toTensor().size(stack[1].toIntVector().back());
  const std::int64_t size = stack[3].toInt();
  TORCH_CHECK(
      size >= 1 && given == size / 2 + 1,
      "a Fourier transform to ",
      size,
      " numbers gets ",
      given);
}

// (query, key, value, ...): the CPU's kernels trust the lengths.
void check_attention(const Stack& stack) {
  const at::Tensor& key = stack[1].toTensor();
  const at::Tensor& value = stack[2].toTensor();
  TORCH_CHECK(
      key.dim() >= 2 && value.dim() >= 2 && key.size(-2) == value.size(-2),
      "attention takes as many values as keys; got the sizes ",
      key.sizes(),
      " and ",
      value.sizes());
}

// What is decomposed from it: batches and heads are equal, or each of the
// heads of keys serves several; the CPU's divides by the lengths.
void check_attention_kernel(const Stack& stack) {
  check_attention(stack);
  const at::Tensor& query = stack[0].toTensor();
  const at::Tensor& key = stack[1].toTensor();
  const at::Tensor& value = stack[2].toTensor();
  const bool are_good =
      query.dim() == 4 && key.dim() == 4 && value.dim() == 4 &&
      query.size(0) == key.size(0) && key.size(0) == value.size(0) &&
      key.size(1) == value.size(1) && key.size(1) > 0 &&
      query.size(1) % key.size(1) == 0 && query.size(2) > 0 && key.size(2) > 0;
  TORCH_CHECK(
      are_good,
      "attention takes [batch, heads, length, size]; got the sizes ",
      query.sizes(),
      ", ",
      key.sizes(),
      " and ",
      value.sizes());
}

// With `enable_gqa`, the argument `place`, heads of keys are divided by.
template <std::size_t place>
void check_grouped_attention(const Stack& stack) {
  check_attention(stack);
  for (const std::size_t i : {1U, 2U}) {
    const at::Tensor& tensor = stack[i].toTensor();
    TORCH_CHECK(
        !stack[place].toBool() || (tensor.dim() >= 3 && tensor.size(-3) > 0),
        "grouped attention without heads: ",
        tensor.sizes());
  }
}

template <std::size_t place>
void check_heads(const Stack& stack) {
  TORCH_CHECK(
      stack[place].toInt() > 0,
      "attention has at least one head, got ",
      stack[place].toInt());
}

// (weight, indices, offsets, ...): where the bags begin. Those on other devices
// are not read for this.
void check_embedding_bag(const Stack& stack) {
  const at::Tensor& indices = stack[1].toTensor();
  const at::Tensor& offsets = stack[2].toTensor();
  TORCH_CHECK(
      indices.dim() == 1 && offsets.dim() == 1,
      "bags take indices and offsets of one dimension, got the sizes ",
      indices.sizes(),
      " and ",
      offsets.sizes());
  if (!offsets.is_cpu()) {
    return;
  }
  TORCH_CHECK(
      offsets.numel() > 0 || indices.numel() == 0,
      "bags without offsets take no indices, got ",
      indices.numel());
  const at::Tensor begins = offsets.to(at::kLong).contiguous();
  std::int64_t last = 0;
  for (const std::int64_t begin : std::span(
           begins.const_data_ptr<std::int64_t>(),
           static_cast<std::size_t>(begins.numel()))) {
    TORCH_CHECK(
        begin >= last && begin <= indices.numel(),
        "offsets of bags ascend up to the number of indices, ",
        indices.numel(),
        "; got ",
        begin,
        " after ",
        last);
    last = begin;
  }
}

struct CheckedRow {
  std::string_view name = {};
  CheckArguments check = nullptr;
};
constexpr std::array kChecked = {
    CheckedRow{"aten::batch_norm", check_batch_norm},
    CheckedRow{"aten::_batch_norm_impl_index", check_batch_norm},
    CheckedRow{"aten::native_batch_norm", check_batch_norm},
    CheckedRow{"aten::_native_batch_norm_legit", check_batch_norm},
    CheckedRow{"aten::_native_batch_norm_legit_functional", check_batch_norm},
    CheckedRow{"aten::_native_batch_norm_legit_no_training", check_batch_norm},
    CheckedRow{"aten::_batch_norm_with_update", check_batch_norm},
    CheckedRow{"aten::_batch_norm_with_update_functional", check_batch_norm},
    CheckedRow{
        "aten::scaled_dot_product_attention",
        check_grouped_attention<7>},
    CheckedRow{
        "aten::_scaled_dot_product_attention_math",
        check_grouped_attention<8>},
    CheckedRow{
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        check_attention_kernel},
    CheckedRow{
        "aten::_scaled_dot_product_flash_attention",
        check_attention_kernel},
    CheckedRow{
        "aten::_scaled_dot_product_efficient_attention",
        check_attention_kernel},
    CheckedRow{
        "aten::_scaled_dot_product_cudnn_attention",
        check_attention_kernel},
    CheckedRow{"aten::_native_multi_head_attention", check_heads<4>},
    CheckedRow{"aten::_transformer_encoder_layer_fwd", check_heads<2>},
    CheckedRow{"aten::embedding_bag", check_embedding_bag},
    CheckedRow{"aten::_embedding_bag", check_embedding_bag},
    CheckedRow{"aten::_embedding_bag_forward_only", check_embedding_bag},
    CheckedRow{"aten::_weight_norm", check_weight_norm},
    CheckedRow{"aten::_weight_norm_interface", check_weight_norm},
    CheckedRow{"aten::_fft_c2c", check_dims},
    CheckedRow{"aten::_fft_r2c", check_dims},
    CheckedRow{"aten::_fft_c2r", check_half_complex}};

} // namespace

CheckArguments find_check(const c10::FunctionSchema& schema) {
  const auto* row = std::ranges::find(
      kChecked,
      std::string_view(schema.name()),
      &CheckedRow::name);
  return row == kChecked.end() ? nullptr : row->check;
}

} // namespace lockstep::program
