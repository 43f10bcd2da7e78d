// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/tools/optim/named_state.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/tools/optim/optim_kinds.h"

namespace lockstep::ckpt::internal {
namespace {

// What a group lists under `key`; empty if it is no list.
const std::vector<Value>& list_in(const Value& group, std::string_view key) {
  static const std::vector<Value> none;
  const Value* found = group.find(key);
  const auto items = found == nullptr ? nullptr : found->elements();
  return items == nullptr ? none : *items;
}

bool has_names(const Dict& state) {
  return std::ranges::any_of(state.items, [](const Item& item) {
    return item.first.as_string() != nullptr;
  });
}

class Numbering {
 public:
  Numbering(const Value& state, const Dict& states)
      : state_(state), states_(states) {}

  Result<NumberedState> run(
      const std::vector<Value>& groups,
      const Value* weights) {
    for (const Value& group : groups) {
      LOCKSTEP_TRY(add_group(group));
    }
    if (indices_.empty()) {
      LOCKSTEP_TRY(number_by_order(weights));
    }
    LOCKSTEP_TRY(rename_states());
    Dict all;
    for (const auto& [key, value] : state_.as_dict()->items) {
      all.items.emplace_back(
          key,
          key.text() == "state"          ? Value(std::move(made_states_))
          : key.text() == "param_groups" ? Value(std::move(made_groups_))
                                         : value);
    }
    result_.state = std::move(all);
    return std::move(result_);
  }

 private:
  // Copies a group, with numbers for the names in `params`. One that is there
  // again has no parameters, or is wrong.
  Status add_group(const Value& group) {
    const auto& params = list_in(group, "params");
    const auto known = known_.find(group.address());
    if (known != known_.end() && params.empty()) {
      made_groups_.items.push_back(known->second);
      return {};
    }
    if (known != known_.end()) {
      return optim_error(
          ErrorCode::kCorrupt,
          "one group of parameters is there more than once");
    }
    if (!params.empty() && !lists_.insert(&params).second) {
      return optim_error(
          ErrorCode::kCorrupt,
          "two groups have one list of parameters");
    }
    const auto& names = list_in(group, "param_names");
    List numbers;
    for (std::size_t i = 0; i < params.size(); ++i) {
      const Value& name = names.size() == params.size() ? names[i] : params[i];
      if (const std::string* text = name.as_string()) {
        if (!indices_.emplace(*text, count_).second) {
          return optim_error(
              ErrorCode::kCorrupt,
              format("two parameters are called '{}'", escape(*text)));
        }
      }
      const bool is_name = params[i].as_string() != nullptr;
      numbers.items.push_back(is_name ? Value(count_) : params[i]);
      numbers_.push_back(numbers.items.back());
      ++count_;
    }
    if (group.as_dict() == nullptr) {
      made_groups_.items.push_back(group);
      return {};
    }
    Dict made = *group.as_dict();
    for (auto& [key, value] : made.items) {
      if (key.text() == "params") {
        value = numbers;
      }
    }
    made_groups_.items.emplace_back(std::move(made));
    known_.emplace(group.address(), made_groups_.items.back());
    return {};
  }

  // The groups have numbers only.
  Status number_by_order(const Value* weights) {
    std::vector<std::string> order;
    std::set<std::string, std::less<>> names;
    for (const auto& [key, value] : states_.items) {
      order.emplace_back(key.text());
      names.insert(order.back());
    }
    std::vector<std::string> in_model;
    const Dict* model = weights == nullptr ? nullptr : weights->as_dict();
    for (std::size_t i = 0; model != nullptr && i < model->items.size(); ++i) {
      const std::string_view name = model->items[i].first.text();
      if (names.contains(name)) {
        in_model.emplace_back(name);
      }
    }
    const bool is_in_model = in_model.size() == order.size();
    if (order.size() != numbers_.size()) {
      return optim_error(
          ErrorCode::kCorrupt,
          format(
              "the state names {}, and the groups number {}: which is which "
              "cannot be told",
              counted(order.size(), "parameter"),
              numbers_.size()),
          "save it with the names in 'params' or 'param_names'");
    }
    const auto& chosen = is_in_model ? in_model : order;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      indices_.emplace(chosen[i], static_cast<std::int64_t>(i));
    }
    result_.notes.push_back(format(
        "the state is keyed by names, and the groups by numbers: taken in the "
        "order of the names in the {}",
        is_in_model ? "model" : "state"));
    return {};
  }

  Status rename_states() {
    for (const auto& [key, value] : states_.items) {
      const std::string* name = key.as_string();
      const auto found =
          name == nullptr ? indices_.end() : indices_.find(*name);
      if (name != nullptr && found == indices_.end()) {
        return optim_error(
            ErrorCode::kCorrupt,
            format(
                "no group has the parameter '{}' of the state",
                escape(*name)));
      }
      made_states_.items.emplace_back(
          name == nullptr
              ? key
              : numbers_.at(static_cast<std::size_t>(found->second)),
          value);
    }
    return {};
  }

  const Value& state_;
  const Dict& states_;
  // Places among all parameters by name, and the numbers of the places.
  std::map<std::string, std::int64_t, std::less<>> indices_;
  std::vector<Value> numbers_;
  std::int64_t count_ = 0;
  std::unordered_map<const void*, Value> known_;
  std::unordered_set<const void*> lists_;
  List made_groups_;
  Dict made_states_;
  NumberedState result_;
};

} // namespace

Result<NumberedState> number_parameters(
    const Value& state,
    const Value* weights) {
  const Value* states = state.find("state");
  const Value* groups = state.find("param_groups");
  if (states == nullptr || states->as_dict() == nullptr || groups == nullptr ||
      groups->elements() == nullptr) {
    return NumberedState{.state = state};
  }
  std::unordered_set<const void*> seen;
  const bool is_named =
      has_names(*states->as_dict()) ||
      std::ranges::any_of(*groups->elements(), [&seen](const Value& group) {
        const auto& params = list_in(group, "params");
        return seen.insert(&params).second &&
               std::ranges::any_of(params, [](const Value& param) {
                 return param.as_string() != nullptr;
               });
      });
  return is_named ? Numbering(state, *states->as_dict())
                        .run(*groups->elements(), weights)
                  : Result(NumberedState{.state = state});
}

} // namespace lockstep::ckpt::internal
