// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/optim.h"
#include "lockstep/ckpt/tools/optim/optim_kinds.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt {
namespace {

using internal::optim_error;
using internal::OptimField;
using internal::OptimKind;

// The values of the keys PREFIX0, PREFIX1, ... up to the first that is missing.
std::vector<Value> numbered(const Value& value, std::string_view prefix) {
  std::vector<Value> found;
  const Dict* dict = value.as_dict();
  if (dict == nullptr) {
    return found;
  }
  std::unordered_map<std::string_view, const Value*> values;
  for (const auto& [key, item] : dict->items) {
    if (key.text().starts_with(prefix)) {
      values.emplace(key.text(), &item);
    }
  }
  for (auto next = values.end();; found.push_back(*next->second)) {
    next = values.find(std::string(prefix) + std::to_string(found.size()));
    if (next == values.end()) {
      return found;
    }
  }
}

class ToPython {
 public:
  Result<OptimState> run(const Value& archive) {
    const Value* groups = archive.find("param_groups");
    const Value* states = archive.find("state");
    if (archive.find("pytorch_version") == nullptr || groups == nullptr ||
        groups->as_dict() == nullptr || states == nullptr ||
        states->as_dict() == nullptr) {
      return optim_error(
          ErrorCode::kInvalidArgument,
          "the file is not an optimizer that C++ torch::save of 1.5 or newer "
          "wrote",
          "expected 'pytorch_version', 'state' and 'param_groups'");
    }
    LOCKSTEP_ASSIGN(Value all_groups, convert_groups(*groups));
    LOCKSTEP_ASSIGN(Value all_states, convert_states(*states->as_dict()));
    result_.root = Value::dict(
        {{"state", std::move(all_states)},
         {"param_groups", std::move(all_groups)}});
    return std::move(result_);
  }

 private:
  Result<Value> convert_groups(const Value& groups) {
    List made;
    for (const Value& group : numbered(groups, "param_groups/")) {
      // A group without parameters may be there more than once.
      const std::uint64_t parameters = result_.parameters;
      const auto known = empty_groups_.find(group.address());
      if (known != empty_groups_.end()) {
        made.items.push_back(known->second);
        continue;
      }
      LOCKSTEP_ASSIGN(Value converted, convert_group(group));
      if (parameters == result_.parameters) {
        empty_groups_.emplace(group.address(), converted);
      }
      made.items.push_back(std::move(converted));
    }
    return Value(std::move(made));
  }

  Result<Value> convert_group(const Value& group) {
    List params;
    for (const Value& address : numbered(group, "params/")) {
      const std::string* text = address.as_string();
      const auto index = static_cast<std::int64_t>(result_.parameters);
      if (text == nullptr || !indices_.emplace(*text, index).second) {
        return optim_error(
            ErrorCode::kCorrupt,
            "the addresses in a parameter group are not all different strings");
      }
      params.items.emplace_back(index);
      ++result_.parameters;
    }
    const Value* options = group.find("options");
    const Dict* dict = options == nullptr ? nullptr : options->as_dict();
    const OptimKind* kind =
        dict == nullptr ? nullptr : internal::find_optim_kind(*dict);
    if (kind == nullptr || (kind_ != nullptr && kind_ != kind)) {
      return optim_error(
          ErrorCode::kCorrupt,
          "the options of a parameter group fit no C++ optimizer");
    }
    kind_ = kind;
    result_.algorithm = kind->name;
    Dict made;
    for (const std::string_view name : kind->python_order) {
      const auto field =
          std::ranges::find(kind->options, name, &OptimField::name);
      Value value = internal::python_default(name);
      const Value* found = options->find(name);
      if (found != nullptr && field != kind->options.end()) {
        LOCKSTEP_ASSIGN(value, internal::to_python_value(*field, *found));
      }
      made.items.emplace_back(std::string(name), std::move(value));
    }
    made.items.emplace_back("params", std::move(params));
    return Value(std::move(made));
  }

  // Entries by address. A state of tensors alone was read as one flat dict
  // with dotted names.
  static Result<std::vector<std::pair<std::string, Value>>> states_in(
      const Dict& states) {
    std::vector<std::pair<std::string, Value>> found;
    std::map<std::string, std::size_t> rows;
    for (const auto& [key, value] : states.items) {
      const std::string name = key_text(key);
      const Dict* whole = value.as_dict();
      const std::size_t dot = whole != nullptr ? name.size() : name.find('.');
      const std::string address = name.substr(0, dot);
      const auto [row, is_new] = rows.emplace(address, found.size());
      if (is_new) {
        found.emplace_back(address, Dict{});
      }
      Value& state = found[row->second].second;
      if (!is_new && (whole != nullptr || state.owners() > 1)) {
        return optim_error(
            ErrorCode::kCorrupt,
            format("the parameter '{}' has two states", escape(address)));
      }
      if (whole != nullptr) {
        state = value;
      } else if (dot < name.size()) {
        state.as_dict()->items.emplace_back(name.substr(dot + 1), value);
      }
    }
    return found;
  }

  Result<Value> convert_states(const Dict& states) {
    std::map<std::int64_t, Value> made;
    LOCKSTEP_ASSIGN(const auto found, states_in(states));
    for (const auto& [address, state] : found) {
      const auto index = indices_.find(address);
      if (index == indices_.end()) {
        return optim_error(
            ErrorCode::kCorrupt,
            format(
                "no group has the parameter '{}' of the state",
                escape(address)));
      }
      Value& entry = converted_[state.address()];
      if (entry.is_none()) {
        LOCKSTEP_ASSIGN(entry, convert_state(*state.as_dict()));
      }
      made.emplace(index->second, entry);
      ++result_.states;
    }
    Dict sorted;
    for (auto& [index, entry] : made) {
      sorted.items.emplace_back(index, std::move(entry));
    }
    return Value(std::move(sorted));
  }

  Result<Value> convert_state(const Dict& state) {
    Dict made;
    for (const auto& [key, value] : state.items) {
      const std::string name = key_text(key);
      const auto field =
          std::ranges::find(kind_->state, name, &OptimField::name);
      if (field == kind_->state.end()) {
        if (dropped_.insert(name).second) {
          result_.dropped.push_back(name);
        }
        continue;
      }
      LOCKSTEP_ASSIGN(Value entry, internal::to_python_value(*field, value));
      made.items.emplace_back(name, std::move(entry));
    }
    return Value(std::move(made));
  }

  const OptimKind* kind_ = nullptr;
  std::map<std::string, std::int64_t> indices_;
  // By the nodes they were made of: a file may share one among thousands.
  std::unordered_map<const void*, Value> empty_groups_;
  std::unordered_map<const void*, Value> converted_;
  std::set<std::string> dropped_;
  OptimState result_;
};

} // namespace

Result<OptimState> optim_to_python(const Value& archive) {
  return ToPython().run(archive);
}

} // namespace lockstep::ckpt
