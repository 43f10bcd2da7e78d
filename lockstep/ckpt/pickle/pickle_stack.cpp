// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_stack.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/pickle/globals.h"
#include "lockstep/ckpt/pickle/pickle_decoder.h"

namespace lockstep::ckpt {
namespace {

Error underflow(std::string message) {
  return pickle_error(ErrorCode::kCorrupt, "E_STACK", std::move(message));
}

// Breaks the cycles that a failed read leaves.
struct Empty {
  template <class T>
  void operator()(const T& /*scalar*/) const {}
  template <class T>
    requires requires(T t) { t.items; }
  void operator()(const std::shared_ptr<T>& node) const {
    auto items = std::exchange(node->items, {});
    if constexpr (std::is_same_v<T, Dict>) {
      auto attributes = std::exchange(node->attributes, {});
    }
    if constexpr (std::is_same_v<T, Object>) {
      auto state = std::exchange(node->state, {});
    }
  }
};

// Address of a container that a pickle can still change, null for the rest.
const void* mutable_node(const Value& value) {
  if (const auto* set = std::get_if<std::shared_ptr<Set>>(&value.data())) {
    return set->get();
  }
  if (const List* list = value.as_list()) {
    return list;
  }
  if (const Dict* dict = value.as_dict()) {
    return dict;
  }
  return value.as_object();
}

} // namespace

PickleStack::~PickleStack() {
  for (const auto& [node, value] : reused_) {
    std::visit(Empty{}, value.data());
  }
}

Status PickleStack::push(Value value, std::uint64_t depth) {
  if (depth > max_depth_) {
    return pickle_error(
        ErrorCode::kUnsafe,
        "E_DEPTH",
        format("values nest deeper than {} levels", max_depth_));
  }
  if (++pushed_ > max_nodes_) {
    return pickle_error(
        ErrorCode::kUnsafe,
        "E_LIMIT",
        format("more than {} values", max_nodes_));
  }
  slots_.push_back({.value = std::move(value), .depth = depth});
  return {};
}

Result<Slot> PickleStack::pop() {
  LOCKSTEP_TRY(top());
  Slot slot = std::move(slots_.back());
  slots_.pop_back();
  return slot;
}

Result<Slot*> PickleStack::top() {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (slots_.size() <= floor) {
    return underflow("stack is empty; expected a value");
  }
  return &slots_.back();
}

void PickleStack::mark() {
  marks_.push_back(slots_.size());
}

Result<std::vector<Slot>> PickleStack::pop_to_mark() {
  if (marks_.empty()) {
    return underflow("no MARK on the stack");
  }
  const auto begin =
      slots_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<Slot> taken(
      std::make_move_iterator(begin),
      std::make_move_iterator(slots_.end()));
  slots_.erase(begin, slots_.end());
  marks_.pop_back();
  return taken;
}

Status PickleStack::duplicate() {
  LOCKSTEP_ASSIGN(const Slot* slot, top());
  note_reuse(slot->value);
  return push(Value(slot->value), slot->depth);
}

Status PickleStack::deepen(Slot& slot, std::uint64_t child_depth) const {
  slot.depth = std::max(slot.depth, child_depth + 1);
  if (slot.depth > max_depth_) {
    return pickle_error(
        ErrorCode::kUnsafe,
        "E_DEPTH",
        format("values nest deeper than {} levels", max_depth_));
  }
  return {};
}

Status PickleStack::put(std::uint64_t index) {
  LOCKSTEP_ASSIGN(const Slot* slot, top());
  if (index == memo_.size()) {
    far_memo_.erase(index);
    memo_.push_back(*slot);
  } else if (index < memo_.size()) {
    memo_[index] = *slot;
  } else {
    far_memo_[index] = *slot;
  }
  return {};
}

Status PickleStack::get(std::uint64_t index) {
  const Slot* slot = find(index);
  if (slot == nullptr) {
    return pickle_error(
        ErrorCode::kCorrupt,
        "E_MEMO",
        format("memo entry {} was never set", index));
  }
  note_reuse(slot->value);
  return push(slot->value, slot->depth);
}

Status PickleStack::memoize() {
  return put(memo_.size() + far_memo_.size());
}

void PickleStack::forget() {
  slots_.clear();
  memo_.clear();
  far_memo_.clear();
}

void PickleStack::release() {
  reused_.clear();
}

const Slot* PickleStack::find(std::uint64_t index) const {
  if (index < memo_.size()) {
    return &memo_[index];
  }
  const auto far = far_memo_.find(index);
  return far == far_memo_.end() ? nullptr : &far->second;
}

void PickleStack::note_reuse(const Value& value) {
  const Object* object = value.as_object();
  const bool is_name = object != nullptr && is_bare_global(*object);
  const void* node = is_name ? nullptr : mutable_node(value);
  if (node != nullptr) {
    reused_.emplace(node, value);
  }
}

} // namespace lockstep::ckpt
