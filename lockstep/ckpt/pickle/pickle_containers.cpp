// SPDX-License-Identifier: BSD-3-Clause
//
// Opcodes that make and fill lists, tuples, dicts and sets.
#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/internal/pickle_ops.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::uint8_t kTuple1 = 0x85;

Error wrong_target(std::string_view wanted, const Value& target) {
  return pickle_error(
      ErrorCode::kCorrupt,
      "E_PICKLE_TYPE",
      format("expected {}, got {}", wanted, target.type_name()));
}

std::uint64_t deepest(const std::vector<Slot>& slots) {
  std::uint64_t depth = 0;
  for (const Slot& slot : slots) {
    depth = std::max(depth, slot.depth);
  }
  return depth;
}

std::vector<Value> values_of(std::vector<Slot> slots) {
  std::vector<Value> values;
  values.reserve(slots.size());
  for (Slot& slot : slots) {
    values.push_back(std::move(slot.value));
  }
  return values;
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
  LOCKSTEP_ASSIGN(auto slots, stack_.pop_to_mark());
  return push_sequence(std::move(slots), /*as_tuple=*/false);
}

Status Machine::op_tuple(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(auto slots, stack_.pop_to_mark());
  return push_sequence(std::move(slots), /*as_tuple=*/true);
}

Status Machine::op_tuple_n(const Instruction& in) {
  std::vector<Slot> slots(in.info->code - kTuple1 + std::size_t{1});
  for (std::size_t i = slots.size(); i-- > 0;) {
    LOCKSTEP_ASSIGN(slots[i], stack_.pop());
  }
  return push_sequence(std::move(slots), /*as_tuple=*/true);
}

Status Machine::push_sequence(std::vector<Slot> slots, bool as_tuple) {
  const std::uint64_t depth = deepest(slots) + 1;
  std::vector<Value> values = values_of(std::move(slots));
  return as_tuple ? stack_.push(Tuple{std::move(values)}, depth)
                  : stack_.push(List{std::move(values)}, depth);
}

Status Machine::op_dict(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(auto slots, stack_.pop_to_mark());
  LOCKSTEP_TRY(stack_.push(Dict{}));
  return set_all(std::move(slots));
}

Status Machine::op_frozenset(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(auto slots, stack_.pop_to_mark());
  const std::uint64_t depth = deepest(slots) + 3;
  Value elements = List{values_of(std::move(slots))};
  return stack_.push(
      Object{
          .global = "builtins.frozenset",
          .args = std::make_shared<Value>(Value::tuple({std::move(elements)}))},
      depth);
}

Status Machine::op_append(const Instruction& /*in*/) {
  std::vector<Slot> slots(1);
  LOCKSTEP_ASSIGN(slots[0], stack_.pop());
  return append_all(std::move(slots));
}

Status Machine::op_appends(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(auto slots, stack_.pop_to_mark());
  return append_all(std::move(slots));
}

Status Machine::append_all(std::vector<Slot> slots) {
  LOCKSTEP_ASSIGN(Slot * target, stack_.top());
  LOCKSTEP_TRY(stack_.deepen(*target, deepest(slots)));
  List* list = target->value.as_list();
  Object* object = made_object(target->value);
  if (list == nullptr && object == nullptr) {
    return wrong_target("a list", target->value);
  }
  for (Slot& slot : slots) {
    if (list != nullptr) {
      list->items.push_back(std::move(slot.value));
    } else {
      const auto index = static_cast<std::int64_t>(object->items.size());
      object->items.emplace_back(index, std::move(slot.value));
    }
  }
  return {};
}

Status Machine::op_setitem(const Instruction& /*in*/) {
  std::vector<Slot> slots(2);
  LOCKSTEP_ASSIGN(slots[1], stack_.pop());
  LOCKSTEP_ASSIGN(slots[0], stack_.pop());
  return set_all(std::move(slots));
}

Status Machine::op_setitems(const Instruction& /*in*/) {
  LOCKSTEP_ASSIGN(auto slots, stack_.pop_to_mark());
  return set_all(std::move(slots));
}

Status Machine::set_all(std::vector<Slot> slots) {
  LOCKSTEP_ASSIGN(Slot * target, stack_.top());
  if (slots.size() % 2 != 0) {
    return pickle_error(
        ErrorCode::kCorrupt,
        "E_STACK",
        format("expected pairs of key and value, got {} items", slots.size()));
  }
  LOCKSTEP_TRY(stack_.deepen(*target, deepest(slots)));
  Dict* dict = target->value.as_dict();
  Object* object = made_object(target->value);
  if (dict == nullptr && object == nullptr) {
    return wrong_target("a dict", target->value);
  }
  auto& items = dict != nullptr ? dict->items : object->items;
  for (std::size_t i = 0; i < slots.size(); i += 2) {
    items.emplace_back(
        std::move(slots[i].value),
        std::move(slots[i + 1].value));
  }
  return {};
}

Status Machine::op_additems(const Instruction& in) {
  LOCKSTEP_ASSIGN(auto slots, stack_.pop_to_mark());
  LOCKSTEP_ASSIGN(Slot * target, stack_.top());
  const auto* set = std::get_if<std::shared_ptr<Set>>(&target->value.data());
  if (set == nullptr) {
    return made_object(target->value) != nullptr
               ? append_all(std::move(slots))
               : Status(wrong_target("a set", target->value));
  }
  LOCKSTEP_TRY(stack_.deepen(*target, deepest(slots)));
  for (Slot& slot : slots) {
    (*set)->items.push_back(std::move(slot.value));
  }
  static_cast<void>(in);
  return {};
}

} // namespace lockstep::ckpt::internal
