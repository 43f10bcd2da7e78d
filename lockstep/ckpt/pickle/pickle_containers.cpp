// SPDX-License-Identifier: BSD-3-Clause
//
// Opcodes that make and fill lists, tuples, dicts and sets.
#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle_ops.h"

namespace lockstep::ckpt::internal {
namespace {

Error wrong_target(std::string_view wanted, const Value& target) {
  return corrupt_pickle(
      "E_PICKLE_TYPE",
      format("expected {}, got {}", wanted, target.type_name()));
}

// An object that was called: a bare name is a class and takes no items.
Object* made_object(const Value& value) {
  Object* object = value.as_object();
  return object == nullptr || is_bare_global(*object) ? nullptr : object;
}

} // namespace

Status Machine::op_empty_list(const Instruction& /*in*/) {
  return stack_.push(List{});
}

Status Machine::op_empty_tuple(const Instruction& /*in*/) {
  return stack_.push(Tuple{});
}

Status Machine::op_empty_dict(const Instruction& /*in*/) {
  return stack_.push(Dict{});
}

Status Machine::op_empty_set(const Instruction& /*in*/) {
  return stack_.push(Set{});
}

Status Machine::op_list(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take_to_mark());
  return stack_.push(List{std::move(taken.values)}, taken.depth + 1);
}

Status Machine::op_tuple(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take_to_mark());
  return push_tuple(std::move(taken));
}

Status Machine::op_tuple_n(const Instruction& in) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take(short_tuple_items(in.info->op)));
  return push_tuple(std::move(taken));
}

Status Machine::push_tuple(Taken taken) {
  return stack_.push(Tuple{std::move(taken.values)}, taken.depth + 1);
}

Status Machine::op_dict(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take_to_mark());
  LOCKSTEP_TRY(stack_.push(Dict{}));
  return set_all(std::move(taken));
}

Status Machine::op_frozenset(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take_to_mark());
  Value elements = List{std::move(taken.values)};
  return stack_.push(
      Object{
          .global = "builtins.frozenset",
          .args = std::make_shared<Value>(Value::tuple({std::move(elements)}))},
      taken.depth + 3);
}

Status Machine::op_append(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take(1));
  return append_all(std::move(taken));
}

Status Machine::op_appends(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take_to_mark());
  return append_all(std::move(taken));
}

Status Machine::append_all(Taken taken) {
  LOCKSTEP_ASSIGN(Slot * target, stack_.top());
  LOCKSTEP_TRY(stack_.deepen(*target, taken.depth));
  List* list = target->value.as_list();
  Object* object = made_object(target->value);
  if (list == nullptr && object == nullptr) {
    return wrong_target("a list", target->value);
  }
  for (Value& value : taken.values) {
    if (list != nullptr) {
      list->items.push_back(std::move(value));
    } else {
      const auto index = static_cast<std::int64_t>(object->items.size());
      object->items.emplace_back(index, std::move(value));
    }
  }
  return {};
}

Status Machine::op_setitem(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take(2));
  return set_all(std::move(taken));
}

Status Machine::op_setitems(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take_to_mark());
  return set_all(std::move(taken));
}

Status Machine::set_all(Taken taken) {
  LOCKSTEP_ASSIGN(Slot * target, stack_.top());
  std::vector<Value>& values = taken.values;
  if (values.size() % 2 != 0) {
    return corrupt_pickle(
        "E_STACK",
        format("expected pairs of key and value, got {} items", values.size()));
  }
  LOCKSTEP_TRY(stack_.deepen(*target, taken.depth));
  Dict* dict = target->value.as_dict();
  Object* object = made_object(target->value);
  if (dict == nullptr && object == nullptr) {
    return wrong_target("a dict", target->value);
  }
  auto& items = dict != nullptr ? dict->items : object->items;
  for (std::size_t i = 0; i < values.size(); i += 2) {
    items.emplace_back(std::move(values[i]), std::move(values[i + 1]));
  }
  return {};
}

Status Machine::op_additems(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(Taken taken, stack_.take_to_mark());
  LOCKSTEP_ASSIGN(Slot * target, stack_.top());
  Set* set = target->value.as_set();
  if (set == nullptr) {
    return made_object(target->value) != nullptr
               ? append_all(std::move(taken))
               : Status(wrong_target("a set", target->value));
  }
  LOCKSTEP_TRY(stack_.deepen(*target, taken.depth));
  for (Value& value : taken.values) {
    set->items.push_back(std::move(value));
  }
  return {};
}

} // namespace lockstep::ckpt::internal
