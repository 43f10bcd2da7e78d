// SPDX-License-Identifier: BSD-3-Clause
//
// Single values of optim_kinds.h between the two sides.
#include <cmath>
#include <optional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/tools/optim/optim_kinds.h"

namespace lockstep::ckpt::internal {
namespace {

// A number, also one in a tensor of one element.
Result<std::optional<double>> loaded_number(const Value& value) {
  const Tensor* tensor = value.as_tensor();
  if (tensor == nullptr || tensor->numel() != 1 ||
      tensor->storage->source == nullptr) {
    const auto number = value.number();
    return number ? std::optional(*number) : std::nullopt;
  }
  LOCKSTEP_ASSIGN(const ByteSpan bytes, tensor->storage->source->load());
  const std::size_t size = dtype_info(tensor->dtype).size;
  const std::size_t at = static_cast<std::size_t>(tensor->offset) * size;
  if (at + size > bytes.size()) {
    return std::optional<double>();
  }
  return read_number(&bytes[at], tensor->dtype);
}

Error wrong_type(const OptimField& field, const Value& value) {
  return optim_error(
      ErrorCode::kCorrupt,
      format("'{}' is of type {}", field.name, value.type_name()));
}

Result<Value> as_integer(const OptimField& field, const Value& value) {
  LOCKSTEP_ASSIGN(const auto number, loaded_number(value));
  constexpr double kExact = 9007199254740992.0; // 2^53
  if (!number || std::trunc(*number) != *number || std::abs(*number) > kExact) {
    return wrong_type(field, value);
  }
  return Value(static_cast<std::int64_t>(*number));
}

Result<Value> as_float(const OptimField& field, const Value& value) {
  LOCKSTEP_ASSIGN(const auto number, loaded_number(value));
  return number ? Result<Value>(Value(*number)) : wrong_type(field, value);
}

Result<Value> as_floats(const OptimField& field, const Value& value) {
  const auto items = value.elements();
  if (items == nullptr) {
    return wrong_type(field, value);
  }
  Tuple made;
  for (const Value& item : *items) {
    LOCKSTEP_ASSIGN(Value number, as_float(field, item));
    made.items.push_back(std::move(number));
  }
  return made.items.size() == 2 ? Result<Value>(Value(std::move(made)))
                                : wrong_type(field, value);
}

// A tensor; a number as one without dimensions.
Result<Value> as_tensor(const OptimField& field, const Value& value) {
  if (value.as_tensor() != nullptr) {
    return value;
  }
  const auto number = value.number();
  return number ? Result<Value>(scalar_tensor(static_cast<float>(*number)))
                : wrong_type(field, value);
}

Result<Value> as_tensors(const OptimField& field, const Value& value) {
  const List* list = value.as_list();
  if (list == nullptr) {
    return wrong_type(field, value);
  }
  List made;
  for (const Value& item : list->items) {
    LOCKSTEP_ASSIGN(Value tensor, as_tensor(field, item));
    made.items.push_back(std::move(tensor));
  }
  return Value(std::move(made));
}

Result<Value> convert(const OptimField& field, const Value& value) {
  switch (field.type) {
    using enum FieldType;
    case kFloat:
      return as_float(field, value);
    case kFloats:
      return as_floats(field, value);
    case kTensor:
      return as_tensor(field, value);
    case kTensors:
      return as_tensors(field, value);
    case kBool:
      return value.as_bool() != nullptr ? Result<Value>(value)
                                        : wrong_type(field, value);
    case kMaybeText:
      return value.is_none() || value.as_string() != nullptr
                 ? Result<Value>(value)
                 : wrong_type(field, value);
    case kMaybeInt:
      return value.is_none() ? Result<Value>(value) : as_integer(field, value);
    default:
      return as_integer(field, value);
  }
}

} // namespace

Result<Value> to_cpp_value(const OptimField& field, const Value& value) {
  const List* list =
      field.type == FieldType::kTensors ? value.as_list() : nullptr;
  if (list != nullptr && list->items.empty()) {
    return optim_error(
        ErrorCode::kUnsupported,
        format(
            "'{}' is an empty list, which cannot be written to an archive for "
            "C++",
            field.name),
        "save the state after one more step, or start the optimizer anew");
  }
  return convert(field, value);
}

Result<Value> to_python_value(const OptimField& field, const Value& value) {
  LOCKSTEP_ASSIGN(Value made, convert(field, value));
  if (field.type == FieldType::kStep) {
    return scalar_tensor(static_cast<float>(*made.as_int()));
  }
  return made;
}

} // namespace lockstep::ckpt::internal
