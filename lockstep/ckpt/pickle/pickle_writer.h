// SPDX-License-Identifier: BSD-3-Clause
//
// Turns a value tree into the pickle that `torch.save` of PyTorch 2.13 would
// write for it: protocol 2, the same opcodes, memo numbers and batches. Only
// what `torch.load(weights_only=True)` accepts is written.
//   auto pickled = write_pickle(root);      // Result<PickledTree>
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/base/result.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// A pickle and what it refers to.
struct PickledTree {
  /// The record `data.pkl`.
  std::string pickle = {};
  /// Storage i is the record `data/i`, in order of first use.
  std::vector<std::shared_ptr<Storage>> storages = {};
  /// Units: bytes of one element of storage i, as its class counts them.
  std::vector<std::uint64_t> element_bytes = {};
};

/// How the pickle refers to storages.
enum class StorageIds : std::uint8_t {
  /// Zip archives: five parts, one string object per key.
  kZip,
  /// The stream of torch 1.5: a sixth part for views, which is None, and a new
  /// string for each use of a key. It cannot hold untyped storages.
  kLegacy,
};

/// How a tree is pickled.
struct PickleOptions {
  StorageIds ids = StorageIds::kZip;
  /// Storages that came from a file keep their keys; the others get the number
  /// of their first use, as PyTorch does. For a pickle beside the old records.
  bool keep_storage_keys = false;
};

/// Pickles `root`. A string, container, tensor or object that is shared in the
/// tree (equal pointers) is written once and referred to afterwards.
/// Errors: kUnsupported for what the safe loader refuses, kInvalidArgument for
/// a tensor that leaves its storage; the message says where:
/// "root['optimizer']['state'][0]".
Result<PickledTree> write_pickle(
    const Value& root,
    const PickleOptions& options = {});

} // namespace lockstep::ckpt
