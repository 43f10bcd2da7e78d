// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/numpy/npy_header.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/formats/numpy/npy_literal.h"

namespace lockstep::ckpt {
namespace {

// Where the literal lies.
struct LiteralPlace {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

Result<LiteralPlace> find_literal(ByteSpan head, std::uint64_t total) {
  constexpr std::size_t kVersionAt = 6;
  const auto byte = [&head](std::size_t at) {
    return static_cast<std::uint64_t>(head[at]);
  };
  const Error ends = internal::bad_npy(
      ErrorCode::kCorrupt,
      "E_TRUNCATED",
      "the array ends inside its header",
      head.size());
  if (head.size() < kVersionAt + 2 + 2) {
    return ends;
  }
  const std::uint64_t major = byte(kVersionAt);
  if (major < 1 || major > 3 || byte(kVersionAt + 1) != 0) {
    return internal::bad_npy(
        ErrorCode::kUnsupported,
        "E_NPY_HEADER",
        format(
            "npy version {}.{}; expected 1.0, 2.0 or 3.0",
            major,
            byte(kVersionAt + 1)),
        kVersionAt);
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  LiteralPlace place{.offset = kVersionAt + 2 + length_bytes};
  if (place.offset > head.size()) {
    return ends;
  }
  for (std::size_t i = length_bytes; i-- > 0;) {
    place.length = place.length << 8 | byte(kVersionAt + 2 + i);
  }
  if (place.length > kMaxNpyHeader || place.length > total - place.offset) {
    return internal::bad_npy(
        ErrorCode::kCorrupt,
        "E_NPY_HEADER",
        format(
            "the header of the array claims {} bytes; expected at most {}",
            place.length,
            std::min(kMaxNpyHeader, total - place.offset)),
        kVersionAt + 2);
  }
  return place;
}

Result<internal::NpyLiteral> read_literal(
    ByteSpan head,
    const LiteralPlace& place) {
  return internal::read_npy_literal(
      as_text(head).substr(place.offset, place.length),
      place.offset);
}

// The bytes of the elements, which must all be there.
Result<std::uint64_t> data_bytes(
    std::uint64_t item_bytes,
    const std::vector<std::int64_t>& shape,
    std::uint64_t data_offset,
    std::uint64_t total) {
  const auto bytes = internal::npy_array_bytes(item_bytes, shape);
  if (!bytes) {
    return internal::bad_npy(
        ErrorCode::kCorrupt,
        "E_OVERFLOW",
        "size of the array does not fit in 64 bits",
        0);
  }
  if (*bytes > total - data_offset) {
    return internal::bad_npy(
        ErrorCode::kCorrupt,
        "E_TRUNCATED",
        format(
            "the array is truncated; expected {} bytes of elements, got {}",
            *bytes,
            total - data_offset),
        data_offset);
  }
  return *bytes;
}

} // namespace

bool is_npy(ByteSpan head) {
  const std::string_view text = as_text(head);
  return text.starts_with(kNpyMagic);
}

Result<NpyHeader> read_npy_header(ByteSpan head, std::uint64_t total) {
  if (!is_npy(head)) {
    return internal::bad_npy(
        ErrorCode::kCorrupt,
        "E_NPY_HEADER",
        "this is not a NumPy array",
        0);
  }
  LOCKSTEP_ASSIGN(const LiteralPlace place, find_literal(head, total));
  LOCKSTEP_ASSIGN(auto literal, read_literal(head, place));
  const std::uint64_t begin = place.offset + place.length;
  if (!literal.type) { // last, so that it vouches for the whole array
    if (literal.item_bytes != internal::kUnknownBytes) {
      LOCKSTEP_TRY(data_bytes(literal.item_bytes, literal.shape, begin, total));
    }
    return internal::bad_npy(
        ErrorCode::kUnsupported,
        "E_DTYPE",
        format(
            "the array has the element type {}, which PyTorch does not have",
            escape(literal.descr)),
        literal.descr_offset);
  }
  NpyHeader header{
      .type = *literal.type,
      .fortran_order = literal.fortran_order,
      .shape = std::move(literal.shape),
      .data_offset = begin};
  LOCKSTEP_ASSIGN(
      header.data_bytes,
      data_bytes(literal.item_bytes, header.shape, header.data_offset, total));
  return header;
}

Result<std::uint64_t> npy_end(ByteSpan head, std::uint64_t total) {
  LOCKSTEP_ASSIGN(const LiteralPlace place, find_literal(head, total));
  LOCKSTEP_ASSIGN(const auto literal, read_literal(head, place));
  const std::uint64_t begin = place.offset + place.length;
  LOCKSTEP_ASSIGN(
      const std::uint64_t bytes,
      data_bytes(literal.item_bytes, literal.shape, begin, total));
  return begin + bytes;
}

Result<std::uint64_t> npy_data_offset(ByteSpan head, std::uint64_t total) {
  LOCKSTEP_ASSIGN(const LiteralPlace place, find_literal(head, total));
  return place.offset + place.length;
}

} // namespace lockstep::ckpt
