// SPDX-License-Identifier: BSD-3-Clause
//
// Cuts a tree into the items of a DCP folder by PyTorch's rule, for the DCP
// writer only: dicts are entered, lists that hold tensors or dicts too; all
// else is one object.
#pragma once

#include <vector>

#include "lockstep/ckpt/formats/dcp/dcp_metadata.h"

namespace lockstep::ckpt::internal {

/// An item and its value.
struct DcpLeaf {
  DcpItem item = {};
  Value value = {};
};

/// The leaves in the order of the tree; those with `is_tensor` are strided
/// tensors with bytes. A module gives the entries of its state_dict.
/// Errors: kInvalidArgument if `root` is not a dict (E_NOT_TENSOR) or two
/// values get one name (E_SAME_NAME); kUnsafe (E_DEPTH).
Result<std::vector<DcpLeaf>> dcp_leaves(const Value& root);

} // namespace lockstep::ckpt::internal
