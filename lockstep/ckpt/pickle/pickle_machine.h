// SPDX-License-Identifier: BSD-3-Clause
//
// Reads a pickle into the value tree and executes nothing: a GLOBAL is a name,
// calls are nodes, and a table (globals.h) turns the known ones into tensors,
// dicts and sizes. Knows nothing of the container around it.
//   auto result = read_pickle(bytes, handler, limits);
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "lockstep/ckpt/checkpoint.h"
#include "lockstep/ckpt/options.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

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

} // namespace lockstep::ckpt
