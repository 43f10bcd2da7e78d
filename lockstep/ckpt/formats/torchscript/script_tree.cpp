// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/torchscript/script_tree.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/budget.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/core/tensor_layout.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

struct ClassRow {
  std::string_view name = {};
  ScriptContainer container = ScriptContainer::kNone;
};
constexpr std::array kClassRows{
    ClassRow{"Module", ScriptContainer::kModule},
    ClassRow{"LockstepDict", ScriptContainer::kDict},
    ClassRow{"LockstepIntDict", ScriptContainer::kIntDict},
    ClassRow{"LockstepList", ScriptContainer::kList},
};

bool is_tensor(const Value& value) {
  return value.as_tensor() != nullptr || layout_tensor(value).has_value();
}

bool has_name(const Item& item) {
  return item.first.as_string() != nullptr;
}

class PlainTree {
 public:
  explicit PlainTree(const Limits& limits)
      : max_depth_(limits.max_depth), budget_(budget_of(limits, 0)) {}

  Result<Value> convert(const Value& value) {
    if (++depth_ > max_depth_) {
      return read_error(
          ErrorCode::kUnsafe,
          "E_DEPTH",
          format("values nest deeper than {} levels", max_depth_));
    }
    auto result = convert_node(value);
    --depth_;
    return result;
  }

 private:
  Result<Value> convert_node(const Value& value) {
    const Object* object = value.as_object();
    if (object == nullptr || is_tensor(value)) {
      return value;
    }
    const auto known = done_.find(object);
    if (known != done_.end()) {
      return known->second;
    }
    LOCKSTEP_ASSIGN(Value made, convert_object(*object));
    done_.emplace(object, made);
    return made;
  }

  Result<Value> convert_object(const Object& object) {
    const Dict* state =
        object.state == nullptr ? nullptr : object.state->as_dict();
    if (state == nullptr || !object.global.starts_with("__torch__.")) {
      return Value(object);
    }
    // Many objects may share one state, and each gets a dict of its own.
    LOCKSTEP_TRY(budget_->step(state->items.size()));
    if (!std::ranges::all_of(state->items, has_name)) {
      return Value(object);
    }
    LOCKSTEP_TRY(budget_->make(state->items.size() * sizeof(Item)));
    Dict items;
    for (const auto& [key, part] : state->items) {
      LOCKSTEP_ASSIGN(Value made, convert(part));
      items.items.emplace_back(key, std::move(made));
    }
    switch (script_container(object.global)) {
      case ScriptContainer::kModule:
        return module(std::move(items));
      case ScriptContainer::kDict:
        return Value(std::move(items));
      case ScriptContainer::kIntDict:
        return integer_keys(std::move(items));
      case ScriptContainer::kList:
        return list(items);
      default:
        break;
    }
    Object copy = object;
    copy.state = std::make_shared<Value>(std::move(items));
    return Value(std::move(copy));
  }

  // A module below became an OrderedDict if it held tensors alone.
  Result<Value> module(Dict items) {
    for (const Item& item : items.items) {
      const Dict* dict = item.second.as_dict();
      if (is_tensor(item.second)) {
        continue;
      }
      LOCKSTEP_ASSIGN(
          const bool is_flat,
          dict == nullptr ? Result<bool>(false) : is_flat_dict(*dict));
      if (!is_flat) {
        return Value(std::move(items));
      }
    }
    Dict flat{.kind = Dict::Kind::kOrderedDict};
    for (auto& [key, value] : items.items) {
      const Dict* below = value.as_dict();
      if (below == nullptr) {
        flat.items.emplace_back(key, std::move(value));
        continue;
      }
      for (const auto& [name, tensor] : below->items) {
        LOCKSTEP_TRY(
            budget_->make(kNameBytes + key.text().size() + name.text().size()));
        flat.items.emplace_back(
            *key.as_string() + "." + *name.as_string(),
            tensor);
      }
    }
    return Value(std::move(flat));
  }

  // What a module of tensors alone becomes. Many may share one.
  Result<bool> is_flat_dict(const Dict& dict) {
    const auto [row, is_new] = flat_.try_emplace(&dict, false);
    if (is_new) {
      LOCKSTEP_TRY(budget_->step(dict.items.size()));
      row->second = dict.kind == Dict::Kind::kOrderedDict &&
                    std::ranges::all_of(dict.items, [](const Item& item) {
                      return has_name(item) && is_tensor(item.second);
                    });
    }
    return row->second;
  }

  static Value integer_keys(Dict items) {
    for (auto& [key, value] : items.items) {
      if (const auto number = parse_number<std::int64_t>(*key.as_string())) {
        key = *number;
      }
    }
    return items;
  }

  static Value list(const Dict& items) {
    List list;
    list.items.reserve(items.items.size());
    for (const auto& [key, value] : items.items) {
      list.items.push_back(value);
    }
    return list;
  }

  // A pair in the dict, and the node of its key, beside the text.
  static constexpr std::uint64_t kNameBytes = 128;

  std::uint64_t max_depth_;
  std::uint64_t depth_ = 0;
  std::shared_ptr<Budget> budget_;
  std::unordered_map<const Object*, Value> done_;
  // Of the file's tree or of `done_`: all stay alive.
  std::unordered_map<const Dict*, bool> flat_;
};

} // namespace

ScriptContainer script_container(std::string_view class_name) {
  constexpr std::string_view kRoot = "__torch__.";
  constexpr std::string_view kMangle = "___torch_mangle_";
  if (!class_name.starts_with(kRoot)) {
    return ScriptContainer::kNone;
  }
  class_name.remove_prefix(kRoot.size());
  if (class_name.starts_with(kMangle)) {
    class_name.remove_prefix(kMangle.size());
    const std::size_t end = class_name.find_first_not_of("0123456789");
    if (end == 0 || end == std::string_view::npos || class_name[end] != '.') {
      return ScriptContainer::kNone;
    }
    class_name.remove_prefix(end + 1);
  }
  const auto* row = std::ranges::find(kClassRows, class_name, &ClassRow::name);
  return row == kClassRows.end() ? ScriptContainer::kNone : row->container;
}

bool is_script_name(std::string_view name) {
  return name.starts_with("__torch__.") ||
         name.starts_with("torch.jit._pickle.");
}

Result<Value> plain_tree(const Value& root, const Limits& limits) {
  return PlainTree(limits).convert(root);
}

} // namespace lockstep::ckpt
