// SPDX-License-Identifier: BSD-3-Clause
//
// Opcodes of names, calls and persistent ids. Nothing is called.
#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle_ops.h"
#include "lockstep/ckpt/pickle/pickle_text.h"

namespace lockstep::ckpt::internal {
namespace {

Error bad_type(std::string message) {
  return corrupt_pickle("E_PICKLE_TYPE", std::move(message));
}

// Attributes of a dict: a dict, or the pair (dict, slots) of other pickles.
const Dict* attributes_in(const Value& state) {
  const Tuple* pair = state.as_tuple();
  if (pair != nullptr && pair->items.size() == 2 && pair->items[1].is_none()) {
    return pair->items[0].as_dict();
  }
  return state.as_dict();
}

Status build_dict(Dict& dict, const Value& state) {
  const Dict* attributes = attributes_in(state);
  if (dict.kind == Dict::Kind::kDict || attributes == nullptr ||
      attributes == &dict) {
    return bad_type(format("state of type {} for a dict", state.type_name()));
  }
  dict.attributes.insert(
      dict.attributes.end(),
      attributes->items.begin(),
      attributes->items.end());
  return {};
}

// Content of `bytearray(text, 'latin-1')`, as protocol 2 spells it.
std::string bytearray_text(const Tuple& args) {
  const std::string* text =
      args.items.empty() ? nullptr : args.items[0].as_string();
  return text == nullptr ? "" : latin1_from_utf8(*text).value_or("");
}

// torch 0.x: a Parameter is followed by (requires_grad, volatile, hooks).
Status build_tensor(Tensor& tensor, const Value& state) {
  const Tuple* parts = state.as_tuple();
  const bool* requires_grad = parts == nullptr || parts->items.size() != 3
                                  ? nullptr
                                  : parts->items[0].as_bool();
  if (!tensor.is_parameter || requires_grad == nullptr) {
    return bad_type(format("state of type {} for a tensor", state.type_name()));
  }
  tensor.requires_grad = *requires_grad;
  return {};
}

} // namespace

Status Machine::op_global(const Instruction& in) {
  return push_global(in.text, in.second, in.offset);
}

Status Machine::op_stack_global(const Instruction& in) {
  LOCKSTEP_ASSIGN(const Slot name, stack_.pop());
  LOCKSTEP_ASSIGN(const Slot module, stack_.pop());
  const std::string* name_text = name.value.as_string();
  const std::string* module_text = module.value.as_string();
  if (name_text == nullptr || module_text == nullptr) {
    return bad_type("module and name are not strings");
  }
  return push_global(*module_text, *name_text, in.offset);
}

Status Machine::push_global(
    std::string_view module,
    std::string_view name,
    std::uint64_t offset) {
  // A dotted name walks attributes in Python and could reach any function
  // through an allowed module: ':' keeps it out of every table.
  const bool is_dotted = name.find('.') != std::string_view::npos;
  const std::string full =
      format("{}{}{}", module, is_dotted ? ":" : ".", name);
  note_global(full, offset);
  return stack_.push(global_value(full));
}

Status Machine::op_inst(const Instruction& in) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take_to_mark());
  LOCKSTEP_TRY(push_tuple(std::move(taken)));
  LOCKSTEP_ASSIGN(const Slot args, stack_.pop());
  LOCKSTEP_TRY(push_global(in.text, in.second, in.offset));
  LOCKSTEP_ASSIGN(const Slot callable, stack_.pop());
  return push_call(callable, args);
}

Status Machine::op_obj(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take_to_mark());
  if (taken.values.empty()) {
    return corrupt_pickle("E_STACK", "no class above MARK");
  }
  const Slot callable{.value = taken.values.front(), .depth = taken.depth};
  taken.values.erase(taken.values.begin());
  LOCKSTEP_TRY(push_tuple(std::move(taken)));
  LOCKSTEP_ASSIGN(const Slot args, stack_.pop());
  return push_call(callable, args);
}

Status Machine::op_reduce(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(const Slot args, stack_.pop());
  LOCKSTEP_ASSIGN(const Slot callable, stack_.pop());
  return push_call(callable, args);
}

Status Machine::op_newobj_ex(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Slot keywords, stack_.pop());
  LOCKSTEP_ASSIGN(Slot args, stack_.pop());
  LOCKSTEP_ASSIGN(const Slot callable, stack_.pop());
  const Object* object = callable.value.as_object();
  if (object == nullptr || !is_bare_global(*object)) {
    return bad_type("class of an object is not a name");
  }
  const std::uint64_t depth = std::max(keywords.depth, args.depth) + 2;
  return stack_.push(
      Object{
          .global = object->global,
          .args = std::make_shared<Value>(Value::tuple(
              {std::move(args.value), std::move(keywords.value)}))},
      depth);
}

Status Machine::push_call(const Slot& callable, const Slot& args) {
  const Tuple* tuple = args.value.as_tuple();
  if (tuple == nullptr) {
    return bad_type(format(
        "arguments are of type {}; expected a tuple",
        args.value.type_name()));
  }
  const std::uint64_t depth = std::max(callable.depth, args.depth) + 1;
  const Object* object = callable.value.as_object();
  if (object == nullptr) {
    return bad_type(
        format("call of a value of type {}", callable.value.type_name()));
  }
  if (!is_bare_global(*object)) {
    // The result of a call is called: both stay as they are.
    return stack_.push(
        Object{
            .global = "<call>",
            .args = std::make_shared<Value>(
                Value::tuple({callable.value, args.value}))},
        depth + 1);
  }
  if (object->global == "builtins.getattr") {
    note_lookup(*tuple);
  }
  LOCKSTEP_ASSIGN(Value value, call_global(object->global, args.value));
  if (const Bytes* bytes = value.as_bytes()) {
    note_bytes(bytes->data, decoder_.position());
  } else if (object->global == "builtins.bytearray") {
    note_bytes(bytearray_text(*tuple), decoder_.position());
  }
  return stack_.push(std::move(value), depth);
}

Status Machine::op_build(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Slot state, stack_.pop());
  LOCKSTEP_ASSIGN(Slot * target, stack_.top());
  LOCKSTEP_TRY(stack_.deepen(*target, state.depth));
  if (Dict* dict = target->value.as_dict()) {
    return build_dict(*dict, state.value);
  }
  if (Tensor* tensor = target->value.as_tensor()) {
    return build_tensor(*tensor, state.value);
  }
  Object* object = target->value.as_object();
  if (object == nullptr || is_bare_global(*object)) {
    return bad_type(
        format("state for a value of type {}", target->value.type_name()));
  }
  object->state = std::make_shared<Value>(std::move(state.value));
  return {};
}

Status Machine::op_persid(const Instruction& in) {
  return push_persistent(Value(in.text));
}

Status Machine::op_binpersid(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(const Slot id, stack_.pop());
  return push_persistent(id.value);
}

Status Machine::push_persistent(const Value& id) {
  if (handler_ == nullptr) {
    return bad_type("persistent id outside a checkpoint");
  }
  LOCKSTEP_ASSIGN(Value value, handler_->resolve(id));
  constexpr std::uint64_t kStorageDepth = 3;
  return stack_.push(std::move(value), kStorageDepth);
}

Status Machine::op_refused(const Instruction& /*in*/) {
  return pickle_error(
      ErrorCode::kUnsupported,
      "E_OPCODE",
      "needs data from outside the pickle");
}

} // namespace lockstep::ckpt::internal
