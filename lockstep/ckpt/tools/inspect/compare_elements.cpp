// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/inspect/compare_elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/tools/edit/float_cast.h"

namespace lockstep::ckpt::internal {
namespace {

struct Parts {
  DType dtype = DType::kFloat32;
  std::size_t count = 1;
  std::size_t bytes = 0;

  explicit Parts(DType whole)
      : dtype(part_dtype(whole)),
        count(dtype == whole ? 1 : 2),
        bytes(dtype_info(dtype).size) {}
};

// A double loses the last bits of a 64-bit integer; a long double holds all
// values of both.
static_assert(std::numeric_limits<long double>::digits >= 64);

std::optional<long double> exact_number(const std::byte* bytes, DType dtype) {
  const ByteSpan element(bytes, dtype_info(dtype).size);
  switch (dtype) {
    case DType::kInt64:
      return read_le<std::int64_t>(element, 0);
    case DType::kUInt64:
      return read_le<std::uint64_t>(element, 0);
    default:
      return read_number(bytes, dtype);
  }
}

Result<ByteSpan> named(std::string_view side, Result<ByteSpan> block) {
  if (!block) {
    block.error().message = format("in {}, {}", side, block.error().message);
  }
  return block;
}

class Comparison {
 public:
  Comparison(
      const Tensor& a,
      const Tensor& b,
      const DiffOptions& options,
      DiffRow& row)
      : a_(a),
        b_(b),
        options_(options),
        row_(row),
        parts_a_(a.dtype),
        parts_b_(b.dtype),
        size_a_(dtype_info(a.dtype).size),
        size_b_(dtype_info(b.dtype).size) {}

  Status run() {
    TensorBlocks left(a_);
    TensorBlocks right(b_);
    const std::uint64_t count =
        std::min(left.block_elements(), right.block_elements());
    left.set_block_elements(count);
    right.set_block_elements(count);
    for (;;) {
      LOCKSTEP_ASSIGN(const ByteSpan block_a, named("A", left.next()));
      LOCKSTEP_ASSIGN(const ByteSpan block_b, named("B", right.next()));
      if (block_a.empty() || block_b.empty()) {
        row_.elements = done_;
        return {};
      }
      add(block_a, block_b);
    }
  }

 private:
  void add(ByteSpan block_a, ByteSpan block_b) {
    const std::uint64_t count =
        std::min(block_a.size() / size_a_, block_b.size() / size_b_);
    const bool same_type = a_.dtype == b_.dtype;
    const bool is_equal =
        same_type &&
        std::memcmp(block_a.data(), block_b.data(), count * size_a_) == 0;
    for (std::uint64_t i = 0; i < count && !is_equal; ++i) {
      const std::byte* x = &block_a[i * size_a_];
      const std::byte* y = &block_b[i * size_b_];
      if (!same_type || std::memcmp(x, y, size_a_) != 0) {
        add_element(x, y, done_ + i);
      }
    }
    done_ += count;
  }

  void
  add_element(const std::byte* x, const std::byte* y, std::uint64_t index) {
    const std::size_t count = std::max(parts_a_.count, parts_b_.count);
    bool differs = false;
    for (std::size_t part = 0; part < count; ++part) {
      differs |=
          add_part(part_of(x, parts_a_, part), part_of(y, parts_b_, part));
    }
    if (!differs) {
      return;
    }
    if (row_.different++ == 0) {
      row_.first = index;
      row_.first_a = element_text(x, a_.dtype);
      row_.first_b = element_text(y, b_.dtype);
    }
  }

  // A real number has an imaginary part of 0. Nothing for packed types.
  static std::optional<long double>
  part_of(const std::byte* element, const Parts& parts, std::size_t part) {
    return part < parts.count
               ? exact_number(element + part * parts.bytes, parts.dtype)
               : std::optional<long double>(0);
  }

  bool add_part(std::optional<long double> x, std::optional<long double> y) {
    if (!x || !y) {
      return true; // packed bytes that are not equal
    }
    if (*x == *y || (std::isnan(*x) && std::isnan(*y))) {
      return false;
    }
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const bool has_nan = std::isnan(*x) || std::isnan(*y);
    const auto size = static_cast<double>(std::abs(*y));
    const double distance =
        has_nan ? kInf : static_cast<double>(std::abs(*x - *y));
    row_.max_abs = std::max(row_.max_abs, distance);
    // Infinite where B has 0.
    row_.max_rel = std::max(row_.max_rel, distance / size);
    // No tolerance reaches from a number to infinity (torch.allclose).
    return !(
        std::isfinite(distance) &&
        distance <= options_.atol + options_.rtol * size);
  }

  const Tensor& a_;
  const Tensor& b_;
  const DiffOptions& options_;
  DiffRow& row_;
  Parts parts_a_;
  Parts parts_b_;
  std::size_t size_a_;
  std::size_t size_b_;
  std::uint64_t done_ = 0;
};

} // namespace

Status compare_elements(
    const Tensor& a,
    const Tensor& b,
    const DiffOptions& options,
    DiffRow& row) {
  return Comparison(a, b, options, row).run();
}

} // namespace lockstep::ckpt::internal
