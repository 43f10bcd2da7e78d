// SPDX-License-Identifier: BSD-3-Clause
//
// Pickles to value trees and back.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

// Reads a pickle into the value tree and executes nothing: a GLOBAL is a name,
// calls are nodes, and a table turns the known ones into tensors,
// dicts and sizes. Knows nothing of the container around it.
//   auto result = read_pickle(bytes, handler, limits);

/// Gives meaning to the persistent ids of a pickle: PyTorch's storages.
class PersistentIdHandler {
 public:
  virtual ~PersistentIdHandler() = default;
  /// The value of `id`, for PyTorch `('storage', class, key, location, numel)`.
  /// A storage is a value as it is. Errors: kCorrupt (E_TYPE, ...).
  virtual Result<Value> resolve(const Value& id) = 0;
};

/// What a pickle holds.
struct PickleResult {
  Value root = {};
  /// Every name in the order of first use, also those popped or never called.
  std::vector<GlobalUse> globals = {};
  /// What `getattr(module.X, 'name')` takes, as "module.X.name": the first 64.
  /// "?" stands for those of other values, and for more or long names.
  std::set<std::string> lookups = {};
  std::vector<Warning> warnings = {};
  /// Units: bytes up to and with STOP.
  std::uint64_t consumed = 0;
  int protocol = 0;
};

/// True if `bytes` start as a pickle does: with a protocol there is, which
/// those of protocols 0 and 1 need not say.
bool starts_like_pickle(std::string_view bytes);

/// Reads the pickle at the front of `bytes`. `handler` may be null: then a
/// persistent id is an error. Errors carry the offset inside the pickle, the
/// opcode's name, and the dangerous names seen before it:
/// kCorrupt (E_PICKLE, E_TRUNCATED, E_STACK, E_MEMO, E_PICKLE_TYPE, E_FRAME,
/// E_PROTO, E_VIEW_BOUNDS, ...), kUnsupported (E_OPCODE, E_PROTO),
/// kUnsafe (E_DEPTH, E_LIMIT).
Result<PickleResult> read_pickle(
    ByteSpan bytes,
    PersistentIdHandler* handler,
    const Limits& limits = {});

// Turns a value tree into the pickle that `torch.save` of PyTorch 2.13 would
// write for it: protocol 2, the same opcodes, memo numbers and batches. Only
// what `torch.load(weights_only=True)` accepts is written.
//   auto pickled = write_pickle(root);      // Result<PickledTree>

/// A pickle and what it refers to.
struct PickledTree {
  /// The record `data.pkl`.
  std::string pickle = {};
  /// In order of first use.
  std::vector<std::shared_ptr<Storage>> storages = {};
  /// Storage i is the record `data/KEY` of the key i: "0", "1", ...
  std::vector<std::string> keys = {};
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
  /// Numbers that no storage may get, for other records have them.
  std::set<std::string> taken_keys = {};
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
