// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/pickle_stack.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/pickle/globals.h"

namespace lockstep::ckpt {
namespace {

Error underflow(std::string message) {
  return corrupt_pickle("E_STACK", std::move(message));
}

Error no_value() {
  return underflow("stack is empty; expected a value");
}

// Breaks the cycles that a failed read leaves.
struct Empty {
  template <class T>
  void operator()(const T& /*scalar*/) const {}
  template <class T>
    requires requires(T& t) { t.items; }
  void operator()(T& node) const {
    auto items = std::exchange(node.items, {});
    if constexpr (std::is_same_v<T, Dict>) {
      auto attributes = std::exchange(node.attributes, {});
    }
    if constexpr (std::is_same_v<T, Object>) {
      auto state = std::exchange(node.state, {});
    }
  }
};

} // namespace

PickleStack::~PickleStack() {
  for (const auto& [node, value] : reused_) {
    value.visit(Empty{});
  }
}

Error PickleStack::too_much(std::uint64_t depth) const {
  return pickle_error(
      ErrorCode::kUnsafe,
      depth > max_depth_ ? "E_DEPTH" : "E_LIMIT",
      depth > max_depth_
          ? format("values nest deeper than {} levels", max_depth_)
          : format("more than {} values", max_nodes_));
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
    return no_value();
  }
  return &slots_.back();
}

void PickleStack::mark() {
  marks_.push_back(slots_.size());
}

Result<Taken> PickleStack::take(std::size_t count) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (slots_.size() - floor < count) {
    return no_value();
  }
  return take_from(slots_.size() - count);
}

Result<Taken> PickleStack::take_to_mark() {
  if (marks_.empty()) {
    return underflow("no MARK on the stack");
  }
  const std::size_t first = marks_.back();
  marks_.pop_back();
  return take_from(first);
}

Taken PickleStack::take_from(std::size_t first) {
  Taken taken;
  const auto begin = slots_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto slots = std::ranges::subrange(begin, slots_.end());
  taken.values.reserve(slots.size());
  for (Slot& slot : slots) {
    taken.depth = std::max(taken.depth, slot.depth);
    taken.values.push_back(std::move(slot.value));
  }
  slots_.erase(begin, slots_.end());
  return taken;
}

Status PickleStack::duplicate() {
  LOCKSTEP_ASSIGN(const Slot* slot, top());
  note_reuse(slot->value);
  return push(Value(slot->value), slot->depth);
}

Status PickleStack::deepen(Slot& slot, std::uint64_t child_depth) const {
  slot.depth = std::max(slot.depth, child_depth + 1);
  return slot.depth > max_depth_ ? Status(too_much(slot.depth)) : Status();
}

Status PickleStack::put(std::uint64_t index) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (slots_.size() <= floor) {
    return no_value();
  }
  if (index == dense_) {
    ++dense_;
    if (!far_.empty()) {
      far_.erase(index);
    }
  } else if (index > dense_) {
    far_.insert(index);
  }
  if (reads_.contains(index)) {
    memo_.insert_or_assign(index, slots_.back());
  }
  return {};
}

Status PickleStack::get(std::uint64_t index) {
  const auto found = memo_.find(index);
  if (found == memo_.end()) {
    return corrupt_pickle(
        "E_MEMO",
        format("memo entry {} was never set", index));
  }
  const Slot& slot = found->second;
  note_reuse(slot.value);
  return push(Value(slot.value), slot.depth);
}

Status PickleStack::memoize() {
  return put(dense_ + far_.size());
}

void PickleStack::forget() {
  slots_.clear();
  memo_.clear();
}

void PickleStack::release(const SharedNodes& kept) {
  std::erase_if(reused_, [&](const auto& entry) {
    return kept.contains(entry.first);
  });
}

void PickleStack::note_reuse(const Value& value) {
  const Object* object = value.as_object();
  const bool is_name = object != nullptr && is_bare_global(*object);
  // A tuple cannot be changed: a cycle through it goes through another.
  if (value.is_container() && value.as_tuple() == nullptr && !is_name) {
    reused_.emplace(value.address(), value);
  }
}

} // namespace lockstep::ckpt
