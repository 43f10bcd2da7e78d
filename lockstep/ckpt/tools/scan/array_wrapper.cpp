// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/scan/array_wrapper.h"

#include "lockstep/base/internal/numbers.h"

namespace lockstep::ckpt {

bool is_array_wrapper(std::string_view name) {
  return name == "joblib.numpy_pickle.NumpyArrayWrapper" ||
         name == "sklearn.externals.joblib.numpy_pickle.NumpyArrayWrapper";
}

std::optional<WrappedType> wrapped_type(std::string_view letters) {
  constexpr std::string_view kOrders = "<>=|";
  constexpr std::string_view kPlain = "biufcSmMUV";
  if (!letters.empty() && kOrders.find(letters[0]) != std::string_view::npos) {
    letters.remove_prefix(1);
  }
  if (letters.empty()) {
    return std::nullopt;
  }
  const char kind = letters[0];
  letters.remove_prefix(1);
  if (kind == 'O') {
    return WrappedType{.kind = kind, .is_object = true};
  }
  const auto size = parse_number<std::uint32_t>(letters);
  if (!size || kPlain.find(kind) == std::string_view::npos) {
    return std::nullopt;
  }
  constexpr std::uint64_t kTextUnit = 4;
  return WrappedType{
      .kind = kind,
      .item_bytes = *size * (kind == 'U' ? kTextUnit : 1)};
}

std::optional<WrappedType> built_type(
    WrappedType type,
    const WrappedTypeState& state) {
  constexpr std::string_view kSized = "SUV";
  constexpr std::uint32_t kHasObject = 1;
  const bool is_structure = type.kind == 'V';
  const bool is_sized = kSized.find(type.kind) != std::string_view::npos;
  const bool is_object = (state.flags & kHasObject) != 0;
  if ((is_sized && state.item_bytes != type.item_bytes) ||
      (!is_structure && (state.has_fields || is_object != type.is_object))) {
    return std::nullopt;
  }
  type.is_object = is_object;
  return type;
}

std::optional<std::uint64_t> wrapped_bytes(
    const WrappedArray& array,
    ByteSpan rest) {
  if (!array.count || !array.type || array.type->is_object ||
      (array.is_aligned && rest.empty())) {
    return std::nullopt;
  }
  const std::uint64_t fill =
      array.is_aligned ? 1 + static_cast<std::uint64_t>(rest[0]) : 0;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(*array.count, array.type->item_bytes, &bytes) ||
      __builtin_add_overflow(bytes, fill, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

} // namespace lockstep::ckpt
