// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

// Classes that hold nothing but attributes.
constexpr std::array<std::string_view, 2> kNamespaces{
    "argparse.Namespace",
    "types.SimpleNamespace"};

constexpr std::uint64_t kMaxDepth = 1000;
/// Units: bytes of a key in a name. Longer ones are cut.
constexpr std::size_t kMostKey = 200;

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
    const Value* attributes = attributes_of(value);
    const bool is_walked =
        attributes != nullptr || value.as_dict() != nullptr ||
        value.as_list() != nullptr || value.as_tuple() != nullptr;
    if (!is_walked) {
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
    if (attributes != nullptr) {
      names.push_back(join(path_, "."));
    }
    LOCKSTEP_ASSIGN(
        Value copy,
        copied(attributes == nullptr ? value : *attributes));
    --depth_;
    done_[value.address()] = copy;
    return copy;
  }

  std::vector<std::string> names;

 private:
  Result<Value> copied(const Value& value) {
    bool is_changed = false;
    const auto step = [&](Value& part, std::string_view key) -> Status {
      path_.emplace_back(key.substr(0, utf8_prefix(key.substr(0, kMostKey))));
      LOCKSTEP_ASSIGN(Value now, run(part));
      path_.pop_back();
      is_changed = is_changed || now.address() != part.address();
      part = std::move(now);
      return {};
    };
    if (const Dict* dict = value.as_dict()) {
      Dict copy = *dict;
      for (auto& [key, part] : copy.items) {
        LOCKSTEP_TRY(step(part, key_text(key)));
      }
      return is_changed ? Value(std::move(copy)) : value;
    }
    std::vector<Value> parts = *value.elements();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      LOCKSTEP_TRY(step(parts[i], std::to_string(i)));
    }
    if (!is_changed) {
      return value;
    }
    return value.as_list() != nullptr ? Value(List{std::move(parts)})
                                      : Value(Tuple{std::move(parts)});
  }

  std::vector<std::string> path_;
  std::map<const void*, Value> done_;
  std::uint64_t depth_ = 0;
};

} // namespace

Result<PlainNamespaces> plain_namespaces(const Value& root) {
  Plainer plainer;
  PlainNamespaces result;
  LOCKSTEP_ASSIGN(result.root, plainer.run(root));
  result.names = std::move(plainer.names);
  return result;
}

} // namespace lockstep::ckpt
