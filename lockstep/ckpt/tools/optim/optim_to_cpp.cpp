// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/made_source.h"
#include "lockstep/ckpt/optim.h"
#include "lockstep/ckpt/tools/optim/named_state.h"
#include "lockstep/ckpt/tools/optim/optim_kinds.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

using internal::optim_error;
using internal::OptimField;
using internal::OptimKind;

// The version that C++ writes, whatever its own.
constexpr const char* kArchiveVersion = "1.5.0";

// An object of an archive.
Value module(std::vector<Item> items) {
  return Object{
      .global = "__torch__.Module",
      .args = std::make_shared<Value>(Tuple{}),
      .state = std::make_shared<Value>(Dict{.items = std::move(items)})};
}

// C++ wants a number that is unique and not null.
std::string address_of(std::int64_t index) {
  constexpr std::int64_t kStep = 64;
  return std::to_string((index + 1) * kStep);
}

class ToCpp {
 public:
  Result<OptimState> run(const Value& state) {
    const Value* groups = state.find("param_groups");
    const Value* states = state.find("state");
    if (groups == nullptr || groups->as_list() == nullptr ||
        states == nullptr || states->as_dict() == nullptr) {
      return optim_error(
          ErrorCode::kInvalidArgument,
          "the value is not an optimizer's state_dict; expected 'state' and "
          "'param_groups'");
    }
    LOCKSTEP_ASSIGN(Value all_groups, convert_groups(*groups->as_list()));
    LOCKSTEP_ASSIGN(Value all_states, convert_states(*states->as_dict()));
    drop_others(state);
    result_.root = module(
        {{"pytorch_version", kArchiveVersion},
         {"state", std::move(all_states)},
         {"param_groups", std::move(all_groups)}});
    return std::move(result_);
  }

 private:
  // What lies beside the state and the groups.
  void drop_others(const Value& state) {
    const Dict* dict = state.as_dict();
    if (dict == nullptr) {
      return;
    }
    for (const auto& [key, value] : dict->items) {
      const std::string name = key_text(key);
      if (name != "state" && name != "param_groups") {
        dropped_.insert(name);
        result_.dropped.push_back(name);
      }
    }
  }

  Result<Value> convert_groups(const List& groups) {
    const auto count = static_cast<std::int64_t>(groups.items.size());
    std::vector<Item> items{
        {"param_groups/size", internal::scalar_tensor(count)}};
    for (std::size_t i = 0; i < groups.items.size(); ++i) {
      const Dict* group = groups.items[i].as_dict();
      const std::string name = "param_groups/" + std::to_string(i);
      // A group without parameters may be there more than once.
      const auto known = empty_groups_.find(group);
      if (known != empty_groups_.end()) {
        items.emplace_back(name, known->second);
        continue;
      }
      const OptimKind* kind =
          group == nullptr ? nullptr : internal::find_optim_kind(*group);
      if (kind == nullptr || (kind_ != nullptr && kind != kind_)) {
        return optim_error(
            ErrorCode::kUnsupported,
            format(
                "group {} belongs to an optimizer that C++ does not have",
                i),
            "C++ has " + internal::optim_kind_names());
      }
      kind_ = kind;
      result_.algorithm = internal::optim_name(*kind, groups.items[i]);
      const std::uint64_t parameters = result_.parameters;
      LOCKSTEP_ASSIGN(Value made, convert_group(groups.items[i]));
      if (parameters == result_.parameters) {
        empty_groups_.emplace(group, made);
      }
      items.emplace_back(name, std::move(made));
    }
    return module(std::move(items));
  }

  Result<Value> convert_group(const Value& group) {
    const Value* params = group.find("params");
    const List* list = params == nullptr ? nullptr : params->as_list();
    if (list == nullptr) {
      return optim_error(
          ErrorCode::kCorrupt,
          "a parameter group has no list 'params'");
    }
    const auto count = static_cast<std::int64_t>(list->items.size());
    std::vector<Item> items{{"params/size", internal::scalar_tensor(count)}};
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      const std::int64_t* index = list->items[i].as_int();
      if (index == nullptr || *index < 0 ||
          !addresses_.emplace(*index, address_of(*index)).second) {
        return optim_error(
            ErrorCode::kCorrupt,
            "the indices in 'params' of a group are not all different");
      }
      items.emplace_back("params/" + std::to_string(i), addresses_.at(*index));
    }
    result_.parameters += list->items.size();
    LOCKSTEP_ASSIGN(Value options, convert_options(group));
    items.emplace_back("options", std::move(options));
    return module(std::move(items));
  }

  Result<Value> convert_options(const Value& group) {
    std::vector<Item> options;
    for (const OptimField& field : kind_->options) {
      LOCKSTEP_ASSIGN(
          Value value,
          internal::to_cpp_value(field, *group.find(field.name)));
      options.emplace_back(std::string(field.name), std::move(value));
    }
    for (const auto& [key, value] : group.as_dict()->items) {
      const std::string name = key_text(key);
      const bool* flag = value.as_bool();
      if (name == "maximize" && flag != nullptr && *flag) {
        return optim_error(
            ErrorCode::kUnsupported,
            "the optimizer maximizes, which C++ optimizers cannot do");
      }
      drop_unless_known(kind_->options, name);
    }
    return module(std::move(options));
  }

  Result<Value> convert_states(const Dict& states) {
    std::vector<Item> items;
    for (const auto& [key, value] : states.items) {
      const std::int64_t* index = key.as_int();
      const auto address =
          index == nullptr ? addresses_.end() : addresses_.find(*index);
      const Dict* state = value.as_dict();
      if (address == addresses_.end() || state == nullptr) {
        return optim_error(
            ErrorCode::kCorrupt,
            format(
                "no group has the parameter '{}' of the state",
                escape(key_text(key))));
      }
      Value& made = converted_[state];
      if (made.is_none()) {
        LOCKSTEP_ASSIGN(made, convert_state(value, *state));
      }
      if (child_count(*made.as_object()->state) != 0) {
        items.emplace_back(address->second, made);
        ++result_.states;
      }
    }
    return module(std::move(items));
  }

  Result<Value> convert_state(const Value& value, const Dict& all) {
    std::vector<Item> made;
    for (const OptimField& field : kind_->state) {
      const Value* found = value.find(field.name);
      if (found != nullptr && !found->is_none()) {
        LOCKSTEP_ASSIGN(Value entry, internal::to_cpp_value(field, *found));
        made.emplace_back(std::string(field.name), std::move(entry));
      }
    }
    for (const auto& [key, entry] : all.items) {
      if (!entry.is_none()) {
        drop_unless_known(kind_->state, key_text(key));
      }
    }
    return module(std::move(made));
  }

  void drop_unless_known(
      std::span<const OptimField> fields,
      const std::string& name) {
    const bool is_known =
        name == "params" ||
        std::ranges::find(fields, name, &OptimField::name) != fields.end();
    if (!is_known && dropped_.insert(name).second) {
      result_.dropped.push_back(name);
    }
  }

  const OptimKind* kind_ = nullptr;
  std::map<std::int64_t, std::string> addresses_;
  // By the dicts they were made of: a file may share one among thousands.
  std::unordered_map<const Dict*, Value> converted_;
  std::unordered_map<const Dict*, Value> empty_groups_;
  std::set<std::string> dropped_;
  OptimState result_;
};

} // namespace

const Value* find_optim_state(const Value& root) {
  if (root.find("param_groups") != nullptr) {
    return &root;
  }
  for (const char* key : {"optimizer", "optimizer_state_dict"}) {
    const Value* found = root.find(key);
    if (found != nullptr && found->find("param_groups") != nullptr) {
      return found;
    }
  }
  return nullptr;
}

Result<OptimState> optim_to_cpp(const Value& state, const Value* weights) {
  LOCKSTEP_ASSIGN(
      internal::NumberedState numbered,
      internal::number_parameters(state, weights));
  LOCKSTEP_ASSIGN(OptimState made, ToCpp().run(numbered.state));
  made.notes = std::move(numbered.notes);
  return made;
}

} // namespace lockstep::ckpt
