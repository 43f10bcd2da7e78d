// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tensor.h"

#include <algorithm>
#include <array>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"

namespace lockstep::ckpt {
namespace {

using enum DType;

constexpr std::array kDTypes{
    DTypeInfo{kFloat64, "float64", 8, "Double"},
    DTypeInfo{kFloat32, "float32", 4, "Float"},
    DTypeInfo{kFloat16, "float16", 2, "Half"},
    DTypeInfo{kBFloat16, "bfloat16", 2, "BFloat16"},
    DTypeInfo{kInt64, "int64", 8, "Long"},
    DTypeInfo{kInt32, "int32", 4, "Int"},
    DTypeInfo{kInt16, "int16", 2, "Short"},
    DTypeInfo{kInt8, "int8", 1, "Char"},
    DTypeInfo{kUInt8, "uint8", 1, "Byte"},
    DTypeInfo{kBool, "bool", 1, "Bool"},
    DTypeInfo{kComplex128, "complex128", 16, "ComplexDouble"},
    DTypeInfo{kComplex64, "complex64", 8, "ComplexFloat"},
    DTypeInfo{kQInt8, "qint8", 1, "QInt8"},
    DTypeInfo{kQUInt8, "quint8", 1, "QUInt8"},
    DTypeInfo{kQInt32, "qint32", 4, "QInt32"},
    DTypeInfo{kQUInt4x2, "quint4x2", 1, "QUInt4x2", 2},
    DTypeInfo{kQUInt2x4, "quint2x4", 1, "QUInt2x4", 4},
    DTypeInfo{kUInt16, "uint16", 2, ""},
    DTypeInfo{kUInt32, "uint32", 4, ""},
    DTypeInfo{kUInt64, "uint64", 8, ""},
    DTypeInfo{kFloat8E5M2, "float8_e5m2", 1, ""},
    DTypeInfo{kFloat8E4M3FN, "float8_e4m3fn", 1, ""},
    DTypeInfo{kFloat8E5M2FNUZ, "float8_e5m2fnuz", 1, ""},
    DTypeInfo{kFloat8E4M3FNUZ, "float8_e4m3fnuz", 1, ""},
    DTypeInfo{kFloat8E8M0FNU, "float8_e8m0fnu", 1, ""},
    DTypeInfo{kFloat4E2M1FNX2, "float4_e2m1fn_x2", 1, ""},
    DTypeInfo{kComplex32, "complex32", 4, ""},
    DTypeInfo{kBits8, "bits8", 1, ""},
    DTypeInfo{kBits16, "bits16", 2, ""},
    DTypeInfo{kBits1x8, "bits1x8", 1, ""},
    DTypeInfo{kBits2x4, "bits2x4", 1, ""},
    DTypeInfo{kBits4x2, "bits4x2", 1, ""},
};

template <class Match>
std::optional<DType> find(Match match) {
  for (const DTypeInfo& row : kDTypes) {
    if (match(row)) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

bool has_negative(const std::vector<std::int64_t>& numbers) {
  return std::ranges::any_of(numbers, [](std::int64_t n) { return n < 0; });
}

bool is_empty(const Tensor& tensor) {
  return std::ranges::find(tensor.sizes, 0) != tensor.sizes.end();
}

// Bytes from the start of the storage to the end of the view, where a dimension
// of size 0 counts as 1; nothing if they, or the bytes of all elements, leave
// 64 bits.
std::optional<std::int64_t> strided_end(const Tensor& tensor) {
  const auto element = static_cast<std::int64_t>(dtype_info(tensor.dtype).size);
  std::int64_t all = element;
  std::int64_t last = tensor.offset;
  bool overflow = false;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    const std::int64_t size = std::max<std::int64_t>(tensor.sizes[i], 1);
    std::int64_t step = 0;
    overflow = __builtin_mul_overflow(all, size, &all) ||
               __builtin_mul_overflow(size - 1, tensor.strides[i], &step) ||
               __builtin_add_overflow(last, step, &last) || overflow;
  }
  std::int64_t end = 0;
  overflow = overflow || __builtin_add_overflow(last, 1, &last) ||
             __builtin_mul_overflow(last, element, &end);
  return overflow ? std::nullopt : std::optional(end);
}

// The same of elements that share bytes. Strides say nothing of those, rows
// follow each other; but what is computed from them must fit, too.
std::optional<std::int64_t> packed_end(const Tensor& tensor) {
  if (!strided_end(tensor)) {
    return std::nullopt;
  }
  const std::int64_t per_byte = dtype_info(tensor.dtype).per_byte;
  std::int64_t bytes = 1;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    const std::int64_t size = std::max<std::int64_t>(tensor.sizes[i], 1);
    const bool is_row = i + 1 == tensor.sizes.size();
    const std::int64_t step =
        is_row ? size / per_byte + (size % per_byte != 0 ? 1 : 0) : size;
    if (__builtin_mul_overflow(bytes, step, &bytes)) {
      return std::nullopt;
    }
  }
  std::int64_t end = 0;
  return __builtin_add_overflow(tensor.offset, bytes, &end)
             ? std::nullopt
             : std::optional(end);
}

} // namespace

std::int64_t Tensor::numel() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    count *= size;
  }
  return count;
}

bool Tensor::is_contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) {
      return numel() == 0;
    }
    expected *= sizes[i];
  }
  return true;
}

std::vector<std::int64_t> row_major_strides(
    const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

Result<ByteSpan> StorageSource::view(
    std::uint64_t offset,
    std::uint64_t length,
    std::vector<std::byte>& /*scratch*/) {
  LOCKSTEP_ASSIGN(const ByteSpan all, load());
  LOCKSTEP_CHECK(offset <= all.size() && length <= all.size() - offset);
  return all.subspan(offset, length);
}

Status check_view(const Tensor& tensor) {
  const std::size_t rank = tensor.sizes.size();
  if (rank != tensor.strides.size() || rank > kMaxDimensions) {
    return corrupt_file(
        "E_RANK",
        format(
            "tensor has {} sizes and {} strides; expected as many, at most {}",
            rank,
            tensor.strides.size(),
            kMaxDimensions));
  }
  const char* negative = has_negative(tensor.sizes)     ? "size"
                         : has_negative(tensor.strides) ? "stride"
                         : tensor.offset < 0            ? "offset"
                                                        : nullptr;
  if (negative != nullptr) {
    return corrupt_file(
        "E_VIEW_NEGATIVE",
        format("tensor with a negative {}", negative));
  }
  const bool is_packed = dtype_info(tensor.dtype).per_byte > 1;
  const auto end = is_packed ? packed_end(tensor) : strided_end(tensor);
  if (!end) {
    return corrupt_file(
        "E_OVERFLOW",
        "size of a tensor does not fit in 64 bits");
  }
  if (!is_empty(tensor) &&
      static_cast<std::uint64_t>(*end) > tensor.storage->nbytes) {
    return corrupt_file(
        "E_VIEW_BOUNDS",
        format(
            "tensor reaches past its storage; expected at most {} bytes, got "
            "{}",
            tensor.storage->nbytes,
            *end));
  }
  return {};
}

std::span<const DTypeInfo> dtype_table() {
  return kDTypes;
}

const DTypeInfo& dtype_info(DType dtype) {
  return kDTypes.at(static_cast<std::size_t>(dtype));
}

std::optional<DType> dtype_by_name(std::string_view name) {
  return find([&](const DTypeInfo& row) { return row.name == name; });
}

std::optional<DType> dtype_by_storage(std::string_view storage) {
  constexpr std::string_view kSuffix = "Storage";
  if (storage.ends_with(kSuffix)) {
    storage.remove_suffix(kSuffix.size());
  }
  return find([&](const DTypeInfo& row) {
    return !row.storage.empty() && row.storage == storage;
  });
}

} // namespace lockstep::ckpt
