// SPDX-License-Identifier: BSD-3-Clause
//
// What a writer says of a tree that it cannot write.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/tensor.h"

namespace lockstep::ckpt::internal {

/// What helps against an error of this name, unless a writer knows better.
struct SaveHint {
  std::string_view detail = {};
  std::string_view hint = {};
};
inline constexpr std::array kSaveHints{
    SaveHint{
        "E_NOT_TENSOR",
        "the format 'pt' holds all plain data; 'lockstep ckpt drop' takes a "
        "value away"},
    SaveHint{
        "E_SAME_NAME",
        "'lockstep ckpt rename' gives one of them another name; the format "
        "'pt' holds both"},
    SaveHint{
        "E_NAME",
        "'lockstep ckpt rename' gives it another name; the format 'pt' takes "
        "any"},
    SaveHint{"E_DTYPE", "the format 'pt' holds tensors of any type"}};

inline constexpr std::string_view kSparseHint =
    "in Python, to_dense() makes a plain tensor of it; the format 'pt' holds "
    "it as it is";
inline constexpr std::string_view kQuantizedHint =
    "in Python, dequantize() makes a plain tensor of it; the format 'pt' holds "
    "it as it is";

/// What helps against an instance of this class; empty for most.
inline std::string_view class_hint(std::string_view class_name) {
  return class_name.starts_with("torch.nn.parameter.Uninitialized")
             ? "a lazy module has no weights yet: run the model on a batch in "
               "Python, and save it then"
             : "";
}

/// Without a `hint` that of `kSaveHints`.
inline Error save_error(
    ErrorCode code,
    std::string detail,
    std::string message,
    std::string hint = {}) {
  const auto* const row =
      std::ranges::find(kSaveHints, detail, &SaveHint::detail);
  if (hint.empty() && row != kSaveHints.end()) {
    hint = row->hint;
  }
  return {
      .code = code,
      .op = "ckpt.save",
      .message = std::move(message),
      .hint = std::move(hint),
      .detail = std::move(detail)};
}

/// Of what has a place for each element. Errors: kUnsupported (E_DTYPE) if
/// elements of the type share bytes.
inline Status check_whole_bytes(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  return info.per_byte == 1
             ? Status()
             : Status(save_error(
                   ErrorCode::kUnsupported,
                   "E_DTYPE",
                   format(
                       "{} has {} elements in a byte, and each needs a place "
                       "of its own here",
                       info.name,
                       info.per_byte)));
}

} // namespace lockstep::ckpt::internal
