// SPDX-License-Identifier: BSD-3-Clause
//
// The tensors of a checkpoint as rows: filtered by name, sorted, folded to a
// depth. For `ls` and `tree`.
//   auto rows = list_tensors(file.root, {.filter = "^fc", .sort = kBytes});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// Order of the rows.
enum class ListOrder {
  /// As in the file.
  kFile,
  kName,
  /// Largest first.
  kBytes,
  kDType,
};

/// Which rows, and in what order.
struct ListOptions {
  ListOrder order = ListOrder::kFile;
  /// Regular expression, as in Perl and Python, that a name must match
  /// somewhere; empty for all.
  std::string filter = {};
};

/// One tensor.
struct ListRow {
  /// Dotted: "state_dict.fc.weight".
  std::string name = {};
  Tensor tensor = {};
  /// Units: bytes of the elements.
  std::uint64_t bytes = 0;
};

/// The tensors below `root`. Reads no tensor bytes. Errors: kInvalidArgument
/// for a broken expression; kUnsafe (E_LIMIT).
Result<std::vector<ListRow>> list_tensors(
    const Value& root,
    const ListOptions& options = {});

/// A part of a dotted name, or a tensor at the end of one.
struct TreeRow {
  /// One part of the name: "layer1"; the whole name is in `path`.
  std::string label = {};
  std::string path = {};
  /// 0 at the top.
  std::size_t level = 0;
  /// Tensors at and below the row, and the bytes of their elements.
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
  /// The tensor itself; null for a part that only leads to others, or that is
  /// folded because of the depth.
  const Tensor* tensor = nullptr;
};

/// Rows of a tree, parents before children, in the order of first appearance.
/// Rows at or below level `max_depth` are folded into their parents; 0 folds
/// nothing. Ownership: the rows point into `tensors`.
std::vector<TreeRow> tree_rows(
    const std::vector<ListRow>& tensors,
    std::size_t max_depth = 0);

} // namespace lockstep::ckpt
