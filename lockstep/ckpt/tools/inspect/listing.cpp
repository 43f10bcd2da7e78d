// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/tools/regex.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

Error filter_error(
    Error error,
    std::string_view filter,
    std::string_view what) {
  error.op = "ckpt.ls";
  error.message = format("'{}' {}: {}", escape(filter), what, error.message);
  return error;
}

void sort_rows(std::vector<ListRow>& rows, ListOrder order) {
  switch (order) {
    case ListOrder::kFile:
      return;
    case ListOrder::kName:
      std::ranges::stable_sort(rows, {}, &ListRow::name);
      return;
    case ListOrder::kBytes:
      std::ranges::stable_sort(rows, std::greater{}, &ListRow::bytes);
      return;
    case ListOrder::kDType:
      std::ranges::stable_sort(rows, {}, [](const ListRow& row) {
        return dtype_info(row.tensor.dtype).name;
      });
      return;
  }
}

// Rows by the path that leads to them; children are put after their parents
// at the end.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::size_t max_depth) : max_depth_(max_depth) {}

  void add(const ListRow& row) {
    std::size_t begin = 0;
    std::size_t level = 0;
    std::size_t node = kRoot;
    // A name of a thousand dots has a thousand paths: what is behind those that
    // take too much is one label.
    std::size_t left = kPathsOfName * row.name.size() + kFreePathBytes;
    for (;;) {
      std::size_t dot = row.name.find('.', begin);
      dot = dot > left ? std::string::npos : dot;
      const bool is_last = dot == std::string::npos;
      left -= is_last ? 0 : dot;
      const bool is_folded = max_depth_ != 0 && level + 1 == max_depth_;
      node = child(node, row.name.substr(0, dot), begin, level);
      TreeRow& entry = nodes_[node].row;
      ++entry.tensors;
      entry.bytes += row.bytes;
      if (is_last) {
        entry.tensor = &row.tensor;
      }
      if (is_last || is_folded) {
        return;
      }
      begin = dot + 1;
      ++level;
    }
  }

  std::vector<TreeRow> finish() {
    std::vector<TreeRow> rows;
    rows.reserve(nodes_.size());
    std::vector<std::size_t> pending = reversed(top_);
    while (!pending.empty()) {
      Node& node = nodes_[pending.back()];
      pending.pop_back();
      const auto below = reversed(node.children);
      pending.insert(pending.end(), below.begin(), below.end());
      rows.push_back(std::move(node.row));
    }
    return rows;
  }

 private:
  static constexpr std::size_t kRoot = static_cast<std::size_t>(-1);
  // Units: lengths of the name, and bytes.
  static constexpr std::size_t kPathsOfName = 16;
  static constexpr std::size_t kFreePathBytes = 4096;

  struct Node {
    TreeRow row = {};
    std::vector<std::size_t> children = {};
  };

  static std::vector<std::size_t> reversed(std::vector<std::size_t> indices) {
    std::ranges::reverse(indices);
    return indices;
  }

  std::size_t child(
      std::size_t parent,
      std::string path,
      std::size_t begin,
      std::size_t level) {
    const auto [known, is_new] = by_path_.try_emplace(path, nodes_.size());
    if (is_new) {
      auto& siblings = parent == kRoot ? top_ : nodes_[parent].children;
      siblings.push_back(nodes_.size());
      TreeRow row{.label = path.substr(begin), .level = level};
      row.path = std::move(path);
      nodes_.push_back({.row = std::move(row)});
    }
    return known->second;
  }

  std::size_t max_depth_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> top_;
  std::map<std::string, std::size_t> by_path_;
};

} // namespace

Result<std::vector<ListRow>> list_tensors(
    const Value& root,
    const ListOptions& options) {
  auto filter = internal::Regex::compile(options.filter);
  if (!filter) {
    return filter_error(
        std::move(filter).error(),
        options.filter,
        "is not a regular expression");
  }
  std::vector<ListRow> rows;
  Status matched;
  const TensorVisitor add = [&](const std::string& name, const Tensor& tensor) {
    const Result<bool> is_wanted =
        options.filter.empty() ? true : filter->matches(name);
    if (!is_wanted && matched) {
      matched =
          filter_error(is_wanted.error(), options.filter, "cannot be matched");
    }
    if (is_wanted && *is_wanted) {
      const std::uint64_t bytes =
          has_bytes(tensor) ? contiguous_bytes(tensor) : 0;
      rows.push_back({.name = name, .tensor = tensor, .bytes = bytes});
    }
  };
  const TensorVisitor add_whole =
      [&add](const std::string& name, const Tensor& whole) {
        if (whole.storage != nullptr) { // else its parts are listed
          add(name, whole);
        }
      };
  LOCKSTEP_TRY(for_each_tensor(
      root,
      TensorVisitors{
          .named = &add,
          .placed = &add,
          .beside = &add,
          .wholes = &add_whole}));
  LOCKSTEP_TRY(matched);
  sort_rows(rows, options.order);
  return rows;
}

std::vector<TreeRow> tree_rows(
    const std::vector<ListRow>& tensors,
    std::size_t max_depth) {
  TreeBuilder builder(max_depth);
  for (const ListRow& row : tensors) {
    builder.add(row);
  }
  return builder.finish();
}

} // namespace lockstep::ckpt
