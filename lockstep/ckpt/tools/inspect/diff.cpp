// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/quantizer.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/unread_array.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/print.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/tools/inspect/compare_elements.h"
#include "lockstep/ckpt/tools/inspect/map_hint.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// What the views of each side repeat.
using Budgets = std::pair<ExpansionBudget, ExpansionBudget>;

// Its elements are not in the file.
bool lacks_bytes(const Tensor& tensor) {
  return tensor.storage != nullptr && !has_bytes(tensor) && tensor.numel() != 0;
}

Status compare_numbers(
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
  return internal::compare_elements(a, b, options, row);
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
    if (lacks_bytes(whole)) { // one without parts
      add(name, whole);
    } else {
      side.wholes.emplace(mapped(name, options), whole);
    }
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
  const std::string more =
      lacks_bytes(tensor) ? "no bytes" : quantizer_text(tensor);
  return more.empty() ? describe(tensor) : describe(tensor) + ", " + more;
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
  if (lacks_bytes(a) != lacks_bytes(b)) {
    row.kind = DiffKind::kNoBytes;
    return std::optional(row);
  }
  LOCKSTEP_TRY(about(
      compare_numbers(a, b, options, budgets, row),
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
  constexpr std::array<std::string_view, 7> kNames{
      "only in A",
      "only in B",
      "shape",
      "dtype",
      "values",
      "quantizer",
      "no bytes"};
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
    } else if (lacks_bytes(named.tensor)) {
      report.without_bytes.push_back(named.name);
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
