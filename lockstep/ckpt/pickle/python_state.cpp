// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/pickle/python_state.h"

#include <optional>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/read_error.h"

namespace lockstep::ckpt {
namespace {

// Null stands for None.
struct StateParts {
  const Dict* attributes = nullptr;
  const Dict* slots = nullptr;
};

bool is_dict_or_none(const Value& value) {
  return value.is_none() || value.as_dict() != nullptr;
}

std::optional<StateParts> parts_of(const Value& state) {
  if (is_dict_or_none(state)) {
    return StateParts{.attributes = state.as_dict()};
  }
  const Tuple* pair = state.as_tuple();
  if (pair == nullptr || pair->items.size() != 2 ||
      !is_dict_or_none(pair->items[0]) || !is_dict_or_none(pair->items[1])) {
    return std::nullopt;
  }
  return StateParts{
      .attributes = pair->items[0].as_dict(),
      .slots = pair->items[1].as_dict()};
}

Value joined_dict(const Dict* first, const Dict* second) {
  if (first == nullptr && second == nullptr) {
    return None{};
  }
  Dict made;
  for (const Dict* dict : {first, second}) {
    if (dict != nullptr) {
      made.items.insert(
          made.items.end(),
          dict->items.begin(),
          dict->items.end());
    }
  }
  return made;
}

} // namespace

Result<Value> joined_state(const Value& state, const Value& more) {
  const auto a = parts_of(state);
  const auto b = parts_of(more);
  if (!a || !b) {
    return corrupt_file(
        "E_PICKLE_TYPE",
        format(
            "state of type {} for what has one of type {}; expected two dicts",
            more.type_name(),
            state.type_name()));
  }
  Value attributes = joined_dict(a->attributes, b->attributes);
  if (a->slots == nullptr && b->slots == nullptr) {
    return attributes;
  }
  return Value::tuple({std::move(attributes), joined_dict(a->slots, b->slots)});
}

} // namespace lockstep::ckpt
