// SPDX-License-Identifier: BSD-3-Clause
//
// The optimizers that Python and C++ both have, as one table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/value.h"

namespace lockstep::ckpt::internal {

/// How C++ stores a value.
enum class FieldType : std::uint8_t {
  kFloat,
  kInt,
  kBool,
  /// Two floats.
  kFloats,
  /// int or None.
  kMaybeInt,
  /// text or None.
  kMaybeText,
  kTensor,
  kTensors,
  /// int in C++, a float32 tensor in Python.
  kStep,
};

/// An option or an entry of the state.
struct OptimField {
  std::string_view name = {};
  FieldType type = FieldType::kFloat;
};

/// One optimizer.
struct OptimKind {
  std::string_view name = {};
  /// In C++'s order.
  std::span<const OptimField> options = {};
  std::span<const OptimField> state = {};
  /// All options in Python's order.
  std::span<const std::string_view> python_order = {};
};

/// The kind whose options are all in `group`; null if there is none.
const OptimKind* find_optim_kind(const Dict& group);

/// The optimizer of a parameter group, "AdamW" where it says so: C++ stores
/// that as Adam.
std::string_view optim_name(const OptimKind& kind, const Value& group);

/// "SGD, Adam, ...".
std::string optim_kind_names();

/// Default of an option that C++ does not have: False, or None.
Value python_default(std::string_view option);

/// A value as C++ stores it. Errors: kCorrupt, kUnsupported (E_OPTIMIZER).
Result<Value> to_cpp_value(const OptimField& field, const Value& value);

/// A value as Python stores it. Errors: kCorrupt (E_OPTIMIZER).
Result<Value> to_python_value(const OptimField& field, const Value& value);

/// An error of an optimizer state.
Error optim_error(ErrorCode code, std::string message, std::string hint = {});

} // namespace lockstep::ckpt::internal
