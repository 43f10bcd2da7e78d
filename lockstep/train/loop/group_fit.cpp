// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/group_fit.h"

#include <algorithm>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/internal/prefix_fit.h"
#include "lockstep/train/loop/group_layouts.h"

namespace lockstep::train {
namespace {

void collect(
    const torch::nn::Module& module,
    const std::string& prefix,
    std::vector<Param>& params) {
  const bool is_norm = module.name().find("Norm") != std::string::npos;
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    const bool is_known = std::ranges::any_of(params, [&](const Param& known) {
      return known.tensor.is_same(item.value());
    });
    if (item.value().defined() && !is_known) {
      params.push_back({prefix + item.key(), item.value(), is_norm});
    }
  }
  for (const auto& child : module.named_children()) {
    collect(*child.value(), prefix + child.key() + ".", params);
  }
}

// What an optimizer keeps of a parameter has its shape, but for counters.
std::optional<std::vector<std::int64_t>> shape_in(const ckpt::Value* state) {
  const ckpt::Dict* dict = state == nullptr ? nullptr : state->as_dict();
  for (std::size_t i = 0; dict != nullptr && i < dict->items.size(); ++i) {
    const auto& [key, value] = dict->items[i];
    if (value.as_tensor() != nullptr && key.text() != "step") {
      return value.as_tensor()->sizes;
    }
  }
  return std::nullopt;
}

SavedGroup saved_group(const ckpt::Value& group, const ckpt::Value* states) {
  SavedGroup saved;
  const ckpt::Value* decay = group.find("weight_decay");
  saved.weight_decay = decay == nullptr ? 0 : decay->number().value_or(0);
  const ckpt::Value* ids = group.find("params");
  const ckpt::Value* names = group.find("param_names");
  const std::vector<ckpt::Value>* list =
      ids == nullptr ? nullptr : ids->elements();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const ckpt::Value& id = (*list)[i];
    const bool is_text = id.as_string() != nullptr;
    if (states == nullptr) {
      saved.shapes.emplace_back();
    } else {
      saved.shapes.push_back(shape_in(
          id.as_int() == nullptr ? states->find(id.text())
                                 : states->find(*id.as_int())));
    }
    if (is_text) {
      saved.names.emplace_back(id.text());
    }
  }
  const std::vector<ckpt::Value>* given =
      names == nullptr ? nullptr : names->elements();
  if (given != nullptr && given->size() == saved.shapes.size()) {
    saved.names.clear();
    for (const ckpt::Value& name : *given) {
      saved.names.emplace_back(name.text());
    }
  }
  return saved;
}

std::vector<Param> params_of(const torch::nn::Module& model) {
  std::vector<Param> params;
  collect(model, "", params);
  return params;
}

std::vector<SavedGroup> groups_of(const ckpt::Value& saved) {
  const ckpt::Value* list = saved.find("param_groups");
  const std::vector<ckpt::Value>* given =
      list == nullptr ? nullptr : list->elements();
  std::vector<SavedGroup> groups;
  for (std::size_t i = 0; given != nullptr && i < given->size(); ++i) {
    groups.push_back(saved_group((*given)[i], saved.find("state")));
  }
  return groups;
}

/// The parameters of each group of the file, in its order, by their numbers in
/// the model.
using Places = std::vector<std::vector<std::size_t>>;

Places in_model_order(const Assignment& assignment, std::size_t groups) {
  Places places(groups);
  for (std::size_t i = 0; i < assignment.size(); ++i) {
    places[assignment[i]].push_back(i);
  }
  return places;
}

// By the names in the file; nothing if it does not say all of them.
std::optional<Places> places_by_names(
    const std::vector<Param>& params,
    const std::vector<SavedGroup>& groups) {
  std::vector<std::string> own;
  std::unordered_map<std::string, std::size_t> numbers;
  for (const Param& param : params) {
    numbers.emplace(param.name, own.size());
    own.push_back(param.name);
  }
  std::vector<std::string> names;
  std::vector<std::size_t> group_of;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    names.insert(names.end(), groups[g].names.begin(), groups[g].names.end());
    group_of.resize(names.size(), g);
  }
  Places places(groups.size());
  const std::vector<std::string> fitted = fit_keys(own, names).keys;
  for (std::size_t i = 0; i < fitted.size(); ++i) {
    const auto found = numbers.find(fitted[i]);
    if (found != numbers.end()) {
      places[group_of[i]].push_back(found->second);
      numbers.erase(found);
    }
  }
  return numbers.empty() && fitted.size() == own.size() ? std::optional(places)
                                                        : std::nullopt;
}

[[noreturn]] void refuse(std::string message) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.resume",
       .message = std::move(message),
       .hint = "--initial-checkpoint starts a new run from the weights; a file "
               "whose groups have 'param_names' (Python: give the optimizer "
               "named_parameters()) can go on",
       .detail = "E_PARAM_GROUPS"});
}

std::string sizes_text(const std::vector<SavedGroup>& groups) {
  std::vector<std::string> sizes;
  sizes.reserve(groups.size());
  for (const SavedGroup& group : groups) {
    sizes.push_back(format("{}", group.shapes.size()));
  }
  return format(
      "{} with {} parameters",
      counted(groups.size(), "group"),
      join(sizes, ", "));
}

GroupFit in_groups(
    const std::vector<Param>& params,
    const Places& places,
    const std::vector<SavedGroup>& groups,
    std::string_view how) {
  GroupFit fit{
      .note = format("the optimizer has {}: {}", sizes_text(groups), how)};
  for (const std::vector<std::size_t>& place : places) {
    ParamGroup& group = fit.groups.emplace_back();
    ckpt::List names;
    for (const std::size_t i : place) {
      group.params.push_back(params[i].tensor);
      names.items.emplace_back(params[i].name);
    }
    group.set("param_names", std::move(names));
  }
  return fit;
}

// "'biases, and the others', 'one part after the other'".
std::string names_of(const std::vector<UsualGrouping>& ways) {
  std::vector<std::string> names;
  for (const UsualGrouping& way : ways) {
    const std::string name = "'" + way.name + "'";
    if (std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  return join(names, ", ") +
         (names.size() < ways.size() ? ", the groups in several orders" : "");
}

} // namespace

std::optional<GroupFit> fit_groups(
    const ckpt::Value& saved,
    const torch::nn::Module& model) {
  const std::vector<SavedGroup> groups = groups_of(saved);
  if (groups.empty()) {
    return std::nullopt;
  }
  std::vector<Param> params = params_of(model);
  std::size_t total = 0;
  for (const SavedGroup& group : groups) {
    total += group.shapes.size();
  }
  if (total != params.size()) {
    // timm leaves out what is frozen.
    std::erase_if(params, [](const Param& param) {
      return !param.tensor.requires_grad();
    });
  }
  const auto named = places_by_names(params, groups);
  if (groups.size() == 1 &&
      (!named || std::ranges::is_sorted(named->front()))) {
    return std::nullopt;
  }
  if (named) {
    return in_groups(params, *named, groups, "by their names");
  }
  if (total != params.size()) {
    refuse(format(
        "the optimizer of the file has {}, the model {} parameters in all",
        sizes_text(groups),
        params.size()));
  }
  const std::vector<Assignment> ways = ways_by_shapes(params, groups);
  if (ways.size() == 1) {
    return in_groups(
        params,
        in_model_order(ways.front(), groups.size()),
        groups,
        "by the shapes of its state");
  }
  const std::vector<UsualGrouping> usual = usual_groupings(params, groups);
  if (usual.size() != 1) {
    refuse(format(
        "the optimizer of the file has {}, and {}",
        sizes_text(groups),
        usual.empty() ? "no usual way to group the model's parameters fits"
                      : "several ways to group the model's parameters fit: " +
                            names_of(usual)));
  }
  return in_groups(
      params,
      in_model_order(usual.front().assignment, groups.size()),
      groups,
      format("taken as {}", usual.front().name));
}

} // namespace lockstep::train
