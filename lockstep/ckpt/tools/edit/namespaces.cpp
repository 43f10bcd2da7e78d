// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/ckpt/edit.h"

namespace lockstep::ckpt {
namespace {

// Classes that hold nothing but attributes.
constexpr std::array<std::string_view, 2> kNamespaces{
    "argparse.Namespace",
    "types.SimpleNamespace"};

constexpr std::uint64_t kMaxDepth = 1000;

// The attributes of a namespace; null for another value.
const Value* attributes_of(const Value& value) {
  const Object* object = value.as_object();
  const bool is_namespace =
      object != nullptr && object->items.empty() && object->state != nullptr &&
      object->state->as_dict() != nullptr &&
      std::ranges::find(kNamespaces, object->global) != kNamespaces.end();
  return is_namespace ? object->state.get() : nullptr;
}

// Copies what leads to a namespace; shared nodes stay shared.
class Plainer {
 public:
  Result<Value> run(const Value& value) {
    // Many may share their attributes, which are copied once.
    if (const Value* attributes = attributes_of(value)) {
      return run(*attributes);
    }
    if (value.as_dict() == nullptr && value.elements() == nullptr) {
      return value;
    }
    const auto [known, is_new] = done_.try_emplace(value.address(), value);
    if (!is_new) {
      return known->second; // of a circle the node as it is
    }
    if (++depth_ > kMaxDepth) {
      return Error{
          .code = ErrorCode::kUnsafe,
          .op = "ckpt.edit",
          .message = "the value is nested too deeply",
          .detail = "E_DEPTH"};
    }
    LOCKSTEP_ASSIGN(Value copy, copied(value));
    --depth_;
    done_[value.address()] = copy;
    return copy;
  }

 private:
  Result<Value> copied(const Value& value) {
    bool is_changed = false;
    const auto step = [&](Value& part) -> Status {
      LOCKSTEP_ASSIGN(Value now, run(part));
      is_changed = is_changed || now.address() != part.address();
      part = std::move(now);
      return {};
    };
    if (const Dict* dict = value.as_dict()) {
      Dict copy = *dict;
      for (auto& [key, part] : copy.items) {
        LOCKSTEP_TRY(step(part));
      }
      return is_changed ? Value(std::move(copy)) : value;
    }
    std::vector<Value> parts = *value.elements();
    for (Value& part : parts) {
      LOCKSTEP_TRY(step(part));
    }
    if (!is_changed) {
      return value;
    }
    return value.as_list() != nullptr ? Value(List{std::move(parts)})
                                      : Value(Tuple{std::move(parts)});
  }

  std::map<const void*, Value> done_;
  std::uint64_t depth_ = 0;
};

} // namespace

Result<Value> plain_namespaces(const Value& root) {
  return Plainer().run(root);
}

} // namespace lockstep::ckpt
