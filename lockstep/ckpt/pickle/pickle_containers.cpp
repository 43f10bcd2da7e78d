// SPDX-License-Identifier: BSD-3-Clause
//
// Opcodes that make and fill lists, tuples, dicts and sets.
#include <algorithm>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/tree_builder.h"

namespace lockstep::ckpt::internal {
namespace {

Error wrong_target(std::string_view wanted, const Value& target) {
  return corrupt_file(
      "E_PICKLE_TYPE",
      format("expected {}, got {}", wanted, target.type_name()));
}

// Python fills small containers at once; large ones come in parts, for which
// exact sizes would copy again and again.
template <class T>
void reserve_first(std::vector<T>& items, std::size_t count) {
  if (items.empty()) {
    items.reserve(count);
  }
}

// An object that was called: a bare name is a class and takes no items.
Object* made_object(Value& value) {
  Object* object = value.as_object();
  return object == nullptr || is_bare_global(*object) ? nullptr : object;
}

} // namespace

std::uint64_t depth_of(std::span<const TreeSlot> slots) {
  std::uint64_t depth = 0;
  for (const TreeSlot& slot : slots) {
    depth = std::max(depth, slot.depth);
  }
  return depth;
}

std::vector<Value> values_of(std::span<TreeSlot> slots) {
  std::vector<Value> values;
  values.reserve(slots.size());
  for (TreeSlot& slot : slots) {
    values.push_back(std::move(slot.value));
  }
  return values;
}

Result<TreeSlot> TreeBuilder::container(
    const Instruction& in,
    std::span<TreeSlot> taken) {
  const std::uint64_t depth = depth_of(taken) + 1;
  switch (in.info->op) {
    case Op::kEmptyList:
    case Op::kList:
      return TreeSlot{List{values_of(taken)}, depth};
    case Op::kEmptySet:
      return TreeSlot{Set{}};
    case Op::kFrozenSet: {
      Value elements = List{values_of(taken)};
      return TreeSlot{
          Object{
              .global = "builtins.frozenset",
              .args =
                  std::make_shared<Value>(Value::tuple({std::move(elements)}))},
          depth + 2};
    }
    case Op::kEmptyDict:
    case Op::kDict: {
      TreeSlot dict{Dict{}};
      LOCKSTEP_TRY(set_all(dict, taken));
      return dict;
    }
    default:
      return TreeSlot{Tuple{values_of(taken)}, depth};
  }
}

Status TreeBuilder::add(
    const Instruction& in,
    TreeSlot& target,
    std::span<TreeSlot> taken) {
  switch (in.info->op) {
    case Op::kBuild:
      return build(target, taken[0]);
    case Op::kSetItem:
    case Op::kSetItems:
      return set_all(target, taken);
    case Op::kAddItems:
      return add_members(target, taken);
    default:
      return append_all(target, taken);
  }
}

Error TreeBuilder::too_much(std::uint64_t depth) const {
  const bool is_deep = depth > limits_.max_depth;
  return read_error(
      ErrorCode::kUnsafe,
      is_deep ? "E_DEPTH" : "E_LIMIT",
      is_deep ? format("values nest deeper than {} levels", limits_.max_depth)
              : format("more than {} values", limits_.max_nodes),
      is_deep ? "Limits::max_depth allows more, up to 2000"
              : "Limits::max_nodes allows more");
}

Status TreeBuilder::deepen(TreeSlot& slot, std::uint64_t child_depth) const {
  slot.depth = std::max(slot.depth, child_depth + 1);
  return slot.depth > limits_.max_depth ? Status(too_much(slot.depth))
                                        : Status();
}

Status TreeBuilder::append_all(TreeSlot& target, std::span<TreeSlot> taken)
    const {
  LOCKSTEP_TRY(deepen(target, depth_of(taken)));
  List* list = target.value.as_list();
  Object* object = made_object(target.value);
  if (list == nullptr && object == nullptr) {
    return wrong_target("a list", target.value);
  }
  if (list != nullptr) {
    reserve_first(list->items, taken.size());
  }
  if (object != nullptr && object->items.empty()) {
    object->is_sequence = !taken.empty();
  }
  for (TreeSlot& slot : taken) {
    if (list != nullptr) {
      list->items.push_back(std::move(slot.value));
    } else {
      const auto index = static_cast<std::int64_t>(object->items.size());
      object->items.emplace_back(index, std::move(slot.value));
    }
  }
  return {};
}

Status TreeBuilder::set_all(TreeSlot& target, std::span<TreeSlot> taken) const {
  if (taken.size() % 2 != 0) {
    return corrupt_file(
        "E_STACK",
        format("expected pairs of key and value, got {} items", taken.size()));
  }
  LOCKSTEP_TRY(deepen(target, depth_of(taken)));
  Dict* dict = target.value.as_dict();
  Object* object = made_object(target.value);
  if (dict == nullptr && object == nullptr) {
    return wrong_target("a dict", target.value);
  }
  if (object != nullptr && !taken.empty()) {
    object->is_sequence = false;
  }
  auto& items = dict != nullptr ? dict->items : object->items;
  reserve_first(items, taken.size() / 2);
  for (std::size_t i = 0; i < taken.size(); i += 2) {
    items.emplace_back(
        std::move(taken[i].value),
        std::move(taken[i + 1].value));
  }
  return {};
}

Status TreeBuilder::add_members(TreeSlot& target, std::span<TreeSlot> taken)
    const {
  Set* set = target.value.as_set();
  if (set == nullptr) {
    return made_object(target.value) != nullptr
               ? append_all(target, taken)
               : Status(wrong_target("a set", target.value));
  }
  LOCKSTEP_TRY(deepen(target, depth_of(taken)));
  for (TreeSlot& slot : taken) {
    set->items.push_back(std::move(slot.value));
  }
  return {};
}

} // namespace lockstep::ckpt::internal
