// SPDX-License-Identifier: BSD-3-Clause
//
// Compares the tensors of two checkpoints, in whatever formats, block by block.
//   auto report = diff(a.root, b.root, {.maps = {{"module.", ""}}});
//   report->rows.empty()                        // equal
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/ckpt/load.h"

namespace lockstep::ckpt {

/// What differs.
enum class DiffKind : std::uint8_t {
  kOnlyA,
  kOnlyB,
  kShape,
  kDType,
  kValues,
  /// What the integers of a quantized tensor stand for.
  kQuantizer,
};

/// "only in A", "only in B", "shape", "dtype", "values", "quantizer".
std::string_view diff_kind_name(DiffKind kind);

/// When two elements count as equal, and how names find each other.
struct DiffOptions {
  /// Equal if |a - b| <= atol + rtol * |b|. NaN equals NaN.
  double rtol = 0;
  double atol = 0;
  /// Names that start with the first get the second instead, in both files.
  std::vector<std::pair<std::string, std::string>> maps = {};
  Limits limits = {};
};

/// One tensor that differs.
struct DiffRow {
  DiffKind kind = DiffKind::kValues;
  /// After the maps.
  std::string name = {};
  /// "float32 [2, 3]"; empty where the tensor is absent; of a quantized tensor
  /// also "scale 0.1, zero point 2".
  std::string a = {};
  std::string b = {};
  /// kDType and kValues: elements beyond the tolerance, the first of them in
  /// row-major order, and the largest differences of all.
  std::uint64_t different = 0;
  std::uint64_t elements = 0;
  std::uint64_t first = 0;
  std::string first_a = {};
  std::string first_b = {};
  double max_abs = 0;
  double max_rel = 0;
};

/// The result of a comparison.
struct DiffReport {
  /// Names in both files.
  std::uint64_t compared = 0;
  std::uint64_t equal = 0;
  std::vector<DiffRow> rows = {};
  /// A map that would make more names meet: "module.="; empty without one.
  std::string map_hint = {};
};

/// Compares; memory does not grow with the size of the tensors.
/// Errors: kInvalidArgument if a map gives two tensors one name; those of the
/// storages; kUnsafe (E_LIMIT).
Result<DiffReport>
diff(const Value& a, const Value& b, const DiffOptions& options = {});

} // namespace lockstep::ckpt
