// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/tensor.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

void own_place(std::shared_ptr<Value>& place) {
  place = place == nullptr ? nullptr : std::make_shared<Value>(*place);
}

// A node of its own with the same children.
Value shallow_copy(const Value& value) {
  return value.visit([&value](const auto& node) -> Value {
    if constexpr (
        requires { node.items; } || requires { node.quantizer; }) {
      auto copy = node;
      if constexpr (requires { copy.args; }) {
        own_place(copy.args);
        own_place(copy.state);
      }
      if constexpr (requires { copy.quantizer; }) {
        own_place(copy.attributes);
        own_place(copy.quantizer);
      }
      return Value(std::move(copy));
    } else {
      return value;
    }
  });
}

} // namespace

Result<Value> TreeCopy::copy_child(const Child& child) {
  return copy(*child.value);
}

const Value* TreeCopy::copy_of(const void* node) const {
  const auto known = done_.find(node);
  return known == done_.end() ? nullptr : &known->second;
}

Result<Value> TreeCopy::copy(const Value& value) {
  const void* node = value.address();
  if (node == nullptr || value.as_string() != nullptr) {
    return value;
  }
  if (const auto known = done_.find(node); known != done_.end()) {
    return known->second;
  }
  if (depth_ > kMaxTreeDepth) {
    return Error{
        .code = ErrorCode::kUnsafe,
        .op = std::string(op_),
        .message =
            format("the value is nested deeper than {} levels", kMaxTreeDepth),
        .detail = "E_DEPTH"};
  }
  ++depth_;
  Value made = shallow_copy(value);
  for (std::size_t i = 0; i < child_count(made); ++i) {
    LOCKSTEP_ASSIGN(child_at(made, i), copy_child(child_of(value, i)));
  }
  --depth_;
  LOCKSTEP_TRY(change(made));
  done_.emplace(node, made);
  return made;
}

} // namespace lockstep::ckpt
