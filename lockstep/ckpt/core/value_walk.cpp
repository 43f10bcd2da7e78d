// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/places.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// Keys and values alternate, as in the file.
Child part(
    const std::vector<Item>& items,
    std::size_t index,
    ChildSlot key,
    ChildSlot value) {
  const Item& item = items[index / 2];
  return index % 2 == 0 ? Child{key, index / 2, &item.first}
                        : Child{value, index / 2, &item.second};
}

struct Count {
  template <class T>
  std::size_t operator()(const T& /*scalar*/) const {
    return 0;
  }
  template <class T>
    requires requires(const T& t) { t.items; }
  std::size_t operator()(const T& node) const {
    return node.items.size();
  }
  std::size_t operator()(const Dict& node) const {
    return 2 * (node.items.size() + node.attributes.size());
  }
  std::size_t operator()(const Object& node) const {
    return (node.args ? 1U : 0U) + (node.state ? 1U : 0U) +
           2 * node.items.size();
  }
  std::size_t operator()(const Tensor& node) const {
    return (node.attributes ? 1U : 0U) + (node.quantizer ? 1U : 0U);
  }
};

struct ChildAt {
  std::size_t index = 0;

  template <class T>
  Child operator()(const T& /*scalar*/) const {
    return {};
  }
  template <class T>
    requires requires(const T& t) { t.items; }
  Child operator()(const T& node) const {
    return {ChildSlot::kElement, index, &node.items[index]};
  }
  Child operator()(const Set& node) const {
    return {ChildSlot::kMember, index, &node.items[index]};
  }
  Child operator()(const Dict& node) const {
    const std::size_t own = 2 * node.items.size();
    return index < own
               ? part(node.items, index, ChildSlot::kKey, ChildSlot::kItem)
               : part(
                     node.attributes,
                     index - own,
                     ChildSlot::kAttributeKey,
                     ChildSlot::kAttribute);
  }
  Child operator()(const Object& node) const {
    std::size_t rest = index;
    if (node.args && rest-- == 0) {
      return {ChildSlot::kArgs, 0, node.args.get()};
    }
    if (node.state && rest-- == 0) {
      return {ChildSlot::kState, 0, node.state.get()};
    }
    return part(node.items, rest, ChildSlot::kKey, ChildSlot::kItem);
  }
  Child operator()(const Tensor& node) const {
    return node.attributes && index == 0
               ? Child{ChildSlot::kTensorAttributes, 0, node.attributes.get()}
               : Child{ChildSlot::kQuantizer, 0, node.quantizer.get()};
  }
};

// Where a module's state names the buffers that its state_dict leaves out.
constexpr std::string_view kHiddenBuffers = "_non_persistent_buffers_set";

// The strings of a set; none for null. A search of its own for each name of a
// hostile file would take as long as both are long.
std::set<std::string_view> texts_in(const Value* value) {
  std::set<std::string_view> texts;
  if (const Set* set = value == nullptr ? nullptr : value->as_set()) {
    for (const Value& element : set->items) {
      if (const std::string* text = element.as_string()) {
        texts.insert(*text);
      }
    }
  }
  return texts;
}

} // namespace

std::size_t child_count(const Value& value) {
  return value.visit(Count{});
}

Child child_of(const Value& value, std::size_t index) {
  return value.visit(ChildAt{index});
}

const Value& child_at(const Value& value, std::size_t index) {
  return *child_of(value, index).value;
}

Value& child_at(Value& value, std::size_t index) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): of what is no const
  return const_cast<Value&>(child_at(std::as_const(value), index));
}

std::optional<std::vector<std::int64_t>> integers_of(
    const Value& value,
    std::size_t most) {
  if (const Size* size = value.as_size()) {
    return size->sizes.size() > most ? std::nullopt
                                     : std::optional(size->sizes);
  }
  const auto elements = value.elements();
  if (elements == nullptr || elements->size() > most) {
    return std::nullopt;
  }
  std::vector<std::int64_t> integers;
  integers.reserve(elements->size());
  for (const Value& element : *elements) {
    const std::int64_t* integer = element.as_int();
    if (integer == nullptr) {
      return std::nullopt;
    }
    integers.push_back(*integer);
  }
  return integers;
}

bool is_module(const Value& value) {
  const Object* object = value.as_object();
  return object != nullptr && object->state != nullptr &&
         object->state->find("_modules") != nullptr;
}

const Dict* script_attributes(const Value& value) {
  const Object* object = value.as_object();
  const bool is_script = object != nullptr && object->state != nullptr &&
                         object->global.starts_with("__torch__.");
  return is_script ? object->state->as_dict() : nullptr;
}

Status for_each_member(const Value& state, const MemberVisitor& visit) {
  const std::set<std::string_view> hidden =
      texts_in(state.find(kHiddenBuffers));
  for (std::size_t i = 0; i < kMemberParts.size(); ++i) {
    const auto kind = static_cast<MemberKind>(i);
    const Value* part = state.find(kMemberParts.at(i));
    const Dict* dict = part == nullptr ? nullptr : part->as_dict();
    if (dict == nullptr) {
      continue;
    }
    for (const auto& [key, value] : dict->items) {
      const bool is_hidden = kind == MemberKind::kBuffer &&
                             key.as_string() != nullptr &&
                             hidden.contains(key.text());
      if (!is_hidden && !value.is_none()) {
        LOCKSTEP_TRY(visit(kind, key, value));
      }
    }
  }
  return {};
}

std::uint64_t member_cost(const Value& state) {
  std::uint64_t cost = child_count(state);
  const auto add_part = [&](std::string_view name) {
    const Value* part = state.find(name);
    cost += part == nullptr ? 0 : child_count(*part);
  };
  std::ranges::for_each(kMemberParts, add_part);
  add_part(kHiddenBuffers);
  return cost;
}

std::string step_text(const PathStep& step) {
  const std::string* key = std::get_if<std::string>(&step);
  return key != nullptr ? *key : std::to_string(std::get<std::int64_t>(step));
}

Error ValueWalk::refuse(const char* detail, std::string message) const {
  return {
      .code = ErrorCode::kUnsafe,
      .op = std::string(bounds_.op),
      .message = std::move(message),
      .detail = detail};
}

// By itself: what it needs of the stack is no part of each level.
Error ValueWalk::too_deep() const {
  return refuse(
      "E_DEPTH",
      format(
          "'{}' is nested deeper than {} levels",
          escape(name_),
          bounds_.max_depth));
}

Status ValueWalk::count(std::uint64_t visits) {
  if (visits > bounds_.max_visits - visits_) {
    return too_many(visits_ + visits, bounds_.max_visits);
  }
  visits_ += visits;
  if (bounds_.budget != nullptr) {
    LOCKSTEP_TRY(bounds_.budget->step(visits));
  }
  return again_ == 0 ? Status() : repeat(visits);
}

Status ValueWalk::repeat(std::uint64_t visits) {
  repeats_ += visits;
  const std::uint64_t most =
      bounds_.max_repeats + kRepeatsPerVisit * (visits_ - repeats_);
  return repeats_ <= most ? Status() : Status(too_many(repeats_, most));
}

Error ValueWalk::too_many(std::uint64_t got, std::uint64_t most) const {
  return refuse(
      "E_LIMIT",
      format(
          "shared values and long keys expand to too many names; expected at "
          "most {}, got {}",
          most,
          got));
}

Status ValueWalk::walk(const Value& value) {
  const std::uint64_t long_name = name_.size() / kVisitBytes;
  LOCKSTEP_TRY(count(1 + long_name));
  LOCKSTEP_TRY(again_ == 0 ? repeat(long_name) : Status());
  if (depth_ == bounds_.max_depth) {
    return too_deep();
  }
  const bool is_again = value.is_container() && value.owners() > 1 &&
                        !shared_.insert(value.address()).second;
  ++depth_;
  again_ += is_again ? 1 : 0;
  Status status = visit(value);
  again_ -= is_again ? 1 : 0;
  --depth_;
  return status;
}

Status ValueWalk::enter(const Value& value) {
  if (const Dict* dict = value.as_dict()) {
    return enter_items(dict->items);
  }
  if (const std::vector<Value>* elements = value.elements()) {
    for (std::size_t i = 0; i < elements->size(); ++i) {
      LOCKSTEP_TRY(below(static_cast<std::int64_t>(i), (*elements)[i]));
    }
    return {};
  }
  const Object* object = value.as_object();
  if (object == nullptr) {
    return {};
  }
  if (is_module(value)) {
    LOCKSTEP_TRY(count(member_cost(*object->state)));
    const std::string_view unnamed = unnamed_child(value);
    return for_each_member(
        *object->state,
        [&](MemberKind kind, const Value& key, const Value& member) {
          const bool is_unnamed = kind == MemberKind::kModule &&
                                  !unnamed.empty() && key.text() == unnamed;
          return is_unnamed ? walk(member) : below_key(key, member);
        });
  }
  if (object->state) {
    // What `is_module` goes over; many objects may share it.
    LOCKSTEP_TRY(count(child_count(*object->state)));
    LOCKSTEP_TRY(walk(*object->state));
  }
  return enter_items(object->items);
}

Status ValueWalk::enter_items(const std::vector<Item>& items) {
  for (const auto& [key, value] : items) {
    LOCKSTEP_TRY(below_key(key, value));
  }
  return {};
}

Status ValueWalk::below_key(const Value& key, const Value& value) {
  const std::string* text = key.as_string();
  return text != nullptr ? below(*text, value) : below(key_text(key), value);
}

Status ValueWalk::below(std::string_view key, const Value& value) {
  return down(key, std::nullopt, value);
}

Status ValueWalk::below(std::int64_t index, const Value& value) {
  return down(std::to_string(index), index, value);
}

Status ValueWalk::down(
    std::string_view text,
    std::optional<std::int64_t> index,
    const Value& value) {
  const std::size_t size = name_.size();
  name_ += name_.empty() ? "" : ".";
  path_.push_back({.begin = name_.size(), .size = text.size(), .index = index});
  name_ += text;
  Status status = walk(value);
  path_.pop_back();
  name_.resize(size);
  return status;
}

std::vector<PathStep> ValueWalk::path() const {
  std::vector<PathStep> steps;
  steps.reserve(path_.size());
  for (const Step& step : path_) {
    steps.push_back(
        step.index ? PathStep(*step.index)
                   : PathStep(name_.substr(step.begin, step.size)));
  }
  return steps;
}

bool ValueWalk::is_at_key(std::string_view key) const {
  return !path_.empty() && !path_.back().index &&
         std::string_view(name_).substr(path_.back().begin) == key;
}

void NodeWalk::run(const Value& root, const Visitor& visit) {
  run_nodes<const Value>(root, visit);
}

void NodeWalk::run(Value& root, const Changer& change) {
  run_nodes<Value>(root, change);
}

template <class V>
void NodeWalk::run_nodes(V& root, const std::function<bool(V& node)>& visit) {
  std::vector<V*> pending{&root};
  while (!pending.empty()) {
    V& node = *pending.back();
    pending.pop_back();
    const bool is_new =
        node.address() != nullptr && seen_.insert(node.address()).second;
    if (is_new && visit(node)) {
      for (std::size_t i = child_count(node); i-- > 0;) {
        pending.push_back(&child_at(node, i));
      }
    }
  }
}

} // namespace lockstep::ckpt
