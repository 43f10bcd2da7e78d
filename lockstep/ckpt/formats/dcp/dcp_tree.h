// SPDX-License-Identifier: BSD-3-Clause
//
// Rebuilds the nested tree of a DCP folder from paths, for its reader only.
//   DcpTree tree;
//   tree.add({"model", "w"}, value);  ...  tree.finish(limits)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"

namespace lockstep::ckpt::internal {

/// Grows a tree of dicts and lists.
class DcpTree {
 public:
  DcpTree();
  ~DcpTree();
  DcpTree(const DcpTree&) = delete;
  DcpTree& operator=(const DcpTree&) = delete;

  /// Errors: kCorrupt (E_DCP_METADATA) if the path leads through another value
  /// or takes a place twice.
  Status add(const DcpItem& item, Value value);
  /// A dict without entries, unless there are some. Errors: as `add`.
  Status add_empty(const std::vector<PathStep>& path);

  /// The tree. A list that lacks an element has None there, as in PyTorch.
  /// PyTorch turns all keys to text; below "state" (of an optimizer), numbers
  /// become integers again. Errors: kUnsafe (E_LIMIT) for lists of more
  /// elements than `limits` allow.
  Result<Value> finish(const Limits& limits);

 private:
  struct Node;

  /// The node at a path, made if it is new; null if another value is there.
  Node* reach(const std::vector<PathStep>& path);

  std::unique_ptr<Node> root_;
};

} // namespace lockstep::ckpt::internal
