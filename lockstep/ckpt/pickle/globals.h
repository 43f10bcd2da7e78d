// SPDX-License-Identifier: BSD-3-Clause
//
// What the names inside a pickle mean. Nothing is imported or called: a name
// that is in the table becomes a typed value, any other stays an `Object`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/ckpt/pickle/names.h"
#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt {

/// What the table knows of a name.
enum class GlobalKind : std::uint8_t {
  /// Not in the table: kept as an `Object`.
  kUnknown,
  /// A function or class that `call_global` turns into a typed value.
  kCallable,
  /// `torch.float32`.
  kDType,
  /// `torch.FloatStorage`.
  kStorageClass,
  /// `torch.FloatTensor`.
  kTensorClass,
  /// Harmless, but kept as an `Object` (a qscheme, `bytearray`).
  kOpaque,
};

/// One answer of the table.
struct GlobalInfo {
  GlobalKind kind = GlobalKind::kUnknown;
  Trust trust = Trust::kUnknown;

  /// Python's `torch.load(weights_only=True)` accepts the name.
  [[nodiscard]] bool is_safe() const {
    return trust == Trust::kSafe;
  }
  /// It holds data and runs nothing of the file.
  [[nodiscard]] bool is_harmless() const {
    return is_safe() || trust == Trust::kDataOnly;
  }
  /// It runs code, loads code or reaches the system.
  [[nodiscard]] bool is_dangerous() const {
    return trust == Trust::kRunsCode;
  }
};

/// "module.name". A dotted name walks attributes in Python and could reach any
/// function through an allowed module: ':' keeps it out of every table.
std::string dotted_name(std::string_view module, std::string_view name);

/// Looks up "module.name", in Python 2 or 3 spelling.
GlobalInfo find_global(std::string_view name);

/// The value of a bare name: a `DTypeValue`, else an `Object` without args.
Value global_value(std::string_view name);

/// What REDUCE of `name` with `args`, a tuple, stands for; an `Object` if we do
/// not know. Errors: kCorrupt (E_PICKLE_TYPE, E_VIEW_*, E_RANK, E_OVERFLOW).
Result<Value> call_global(std::string_view name, const Value& args);

/// A class or function by name, not yet called.
bool is_bare_global(const Object& object);

/// Name of a class: "module.Class"; of one that cloudpickle sent as a value,
/// what its maker is told ("Net").
std::string class_name_of(const Object& type);

} // namespace lockstep::ckpt
