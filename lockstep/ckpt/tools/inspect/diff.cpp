// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/read_le.h"
#include "lockstep/ckpt/core/unread_array.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/tools/edit/float_cast.h"
#include "lockstep/ckpt/tools/inspect/map_hint.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

struct Parts {
  DType dtype = DType::kFloat32;
  std::size_t count = 1;
  std::size_t bytes = 0;

  explicit Parts(DType whole)
      : dtype(internal::part_dtype(whole)),
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
      return internal::read_le<std::int64_t>(element, 0);
    case DType::kUInt64:
      return internal::read_le<std::uint64_t>(element, 0);
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

// What the views of each side repeat.
using Budgets = std::pair<ExpansionBudget, ExpansionBudget>;

// Fills the numbers of `row`, block by block. Tensors without bytes are equal.
Status compare_elements(
    const Tensor& a,
    const Tensor& b,
    const DiffOptions& options,
    Budgets& budgets,
    DiffRow& row) {
  if (!has_bytes(a) || !has_bytes(b)) {
    return {};
  }
  LOCKSTEP_TRY(budgets.first.add(a));
  LOCKSTEP_TRY(budgets.second.add(b));
  return Comparison(a, b, options, row).run();
}

struct Named {
  std::string name = {};
  Tensor tensor = {};
};

// Tensors of a file by their mapped names, in file order.
struct Side {
  std::vector<Named> tensors = {};
  // Of other layouts: what is not in their parts.
  std::map<std::string, Tensor> wholes = {};
  std::map<std::string, std::size_t, std::less<>> index = {};
  // How often a name was there before.
  std::map<std::string, int> twice = {};

  /// Two keys may look alike: 'a.b' and 'b' in 'a', 1 and '1'. False if the
  /// second of them got a number.
  bool add(const std::string& name, const Tensor& tensor) {
    std::string key = name;
    while (index.contains(key)) {
      key = format("{} ({})", name, ++twice[name] + 1);
    }
    index.emplace(key, tensors.size());
    tensors.push_back({.name = key, .tensor = tensor});
    return key == name;
  }
  [[nodiscard]] const Tensor* find(const std::string& name) const {
    const auto found = index.find(name);
    return found == index.end() ? nullptr : &tensors[found->second].tensor;
  }
};

// What a tensor that is quantized per channel holds beside its integers.
std::vector<std::pair<std::string, Tensor>> channel_parts(
    const Tensor& tensor) {
  std::vector<std::pair<std::string, Tensor>> parts;
  if (tensor.quantizer == nullptr) {
    return parts;
  }
  const auto quantizer = read_quantizer(tensor);
  if (!quantizer) { // broken; its integers can be compared all the same
    return parts;
  }
  if (const Tensor* scales = quantizer->scales.as_tensor()) {
    parts.emplace_back(".scales", *scales);
  }
  if (const Tensor* zeros = quantizer->zero_points.as_tensor()) {
    parts.emplace_back(".zero_points", *zeros);
  }
  return parts;
}

std::string mapped(const std::string& name, const DiffOptions& options) {
  for (const auto& [from, to] : options.maps) {
    if (name.starts_with(from)) {
      return to + name.substr(from.size());
    }
  }
  return name;
}

Result<Side> collect(const Value& root, const DiffOptions& options) {
  Side side;
  std::string twice;
  const TensorVisitor add = [&](const std::string& name, const Tensor& tensor) {
    const std::string key = mapped(name, options);
    twice = side.add(key, tensor) ? twice : key;
    for (const auto& [part, value] : channel_parts(tensor)) {
      side.add(key + part, value);
    }
  };
  const TensorVisitor add_whole = [&](const std::string& name,
                                      const Tensor& whole) {
    side.wholes.emplace(mapped(name, options), whole);
  };
  LOCKSTEP_TRY(for_each_tensor(
      root,
      TensorVisitors{
          .named = &add,
          .placed = &add,
          .beside = &add,
          .wholes = &add_whole},
      bounds_of(options.limits)));
  if (!twice.empty() && !options.maps.empty()) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .op = "ckpt.diff",
        .message =
            format("the maps give two tensors the name '{}'", escape(twice))};
  }
  return side;
}

std::string text_of(const Tensor& tensor) {
  const std::string quantizer = quantizer_text(tensor);
  return quantizer.empty() ? describe(tensor)
                           : describe(tensor) + ", " + quantizer;
}

DiffRow absent(DiffKind kind, const Named& named) {
  DiffRow row{.kind = kind, .name = named.name};
  (kind == DiffKind::kOnlyA ? row.a : row.b) = text_of(named.tensor);
  return row;
}

// The row of two tensors of one name, nothing if they are equal.
Result<std::optional<DiffRow>> compare(
    const std::string& name,
    const Tensor& a,
    const Tensor& b,
    const DiffOptions& options,
    Budgets& budgets) {
  DiffRow row{.name = name, .a = text_of(a), .b = text_of(b)};
  if (a.sizes != b.sizes) {
    row.kind = DiffKind::kShape;
    return std::optional(row);
  }
  LOCKSTEP_TRY(about(
      compare_elements(a, b, options, budgets, row),
      format("tensor '{}'", escape(name))));
  if (a.dtype != b.dtype && !options.ignore_dtype) {
    row.kind = DiffKind::kDType;
    return std::optional(row);
  }
  if (row.different == 0 && a.dtype == b.dtype && row.a != row.b) {
    row.kind = DiffKind::kQuantizer;
    return std::optional(row);
  }
  return row.different == 0 ? std::optional<DiffRow>() : std::optional(row);
}

// Tensors of other layouts: their shapes; their parts were compared.
void compare_wholes(const Side& a, const Side& b, std::vector<DiffRow>& rows) {
  for (const auto& [name, whole] : a.wholes) {
    const auto other = b.wholes.find(name);
    if (other == b.wholes.end()) {
      if (b.find(name) == nullptr) {
        rows.push_back(absent(DiffKind::kOnlyA, {name, whole}));
      }
    } else if (describe(whole) != describe(other->second)) {
      const bool is_shape = whole.sizes != other->second.sizes;
      rows.push_back(
          {.kind = is_shape ? DiffKind::kShape : DiffKind::kDType,
           .name = name,
           .a = describe(whole),
           .b = describe(other->second)});
    }
  }
  for (const auto& [name, whole] : b.wholes) {
    if (!a.wholes.contains(name) && a.find(name) == nullptr) {
      rows.push_back(absent(DiffKind::kOnlyB, {name, whole}));
    }
  }
}

} // namespace

std::string_view diff_kind_name(DiffKind kind) {
  constexpr std::array<std::string_view, 6>
      kNames{"only in A", "only in B", "shape", "dtype", "values", "quantizer"};
  return kNames.at(static_cast<std::size_t>(kind));
}

Result<DiffReport>
diff(const Value& a, const Value& b, const DiffOptions& options) {
  LOCKSTEP_ASSIGN(const Side left, collect(a, options));
  LOCKSTEP_ASSIGN(const Side right, collect(b, options));
  DiffReport report;
  const ExpansionBudget budget(options.limits.max_expanded_bytes);
  Budgets budgets(budget, budget);
  for (const Named& named : left.tensors) {
    const Tensor* other = right.find(named.name);
    if (other == nullptr) {
      report.rows.push_back(absent(DiffKind::kOnlyA, named));
      continue;
    }
    ++report.compared;
    LOCKSTEP_ASSIGN(
        auto row,
        compare(named.name, named.tensor, *other, options, budgets));
    if (row) {
      report.rows.push_back(*std::move(row));
    } else {
      ++report.equal;
    }
  }
  for (const Named& named : right.tensors) {
    if (left.find(named.name) == nullptr) {
      report.rows.push_back(absent(DiffKind::kOnlyB, named));
    }
  }
  compare_wholes(left, right, report.rows);
  report.map_hint = internal::map_hint(report.rows);
  LOCKSTEP_ASSIGN(
      report.unread,
      internal::arrays_in(a, b, bounds_of(options.limits)));
  return report;
}

} // namespace lockstep::ckpt
