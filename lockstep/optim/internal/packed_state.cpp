// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/packed_state.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ops/scalar_tensor.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/optim.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/optim/internal/checks.h"
#include "lockstep/optim/internal/named_state.h"
#include "lockstep/optim/internal/state_reader.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::internal {

namespace {

std::string shape_text(at::IntArrayRef sizes) {
  std::vector<std::string> parts;
  for (const std::int64_t size : sizes) {
    parts.push_back(format("{}", size));
  }
  return "[" + join(parts, ", ") + "]";
}

/// `step` counts updates: as the file has it, except where the fused kernels
/// want float32 beside the parameter.
at::Tensor
loaded_step(const ckpt::Value& saved, const at::Tensor& param, bool is_fused) {
  if (const auto number = saved.number()) {
    if (!(std::abs(*number) <= std::numeric_limits<float>::max())) {
      mismatch(format(
          "'step' of the loaded state: expected a count, got {}",
          shortest(*number)));
    }
    return at::scalar_tensor(
        *number,
        at::TensorOptions(step_dtype(is_fused))
            .device(is_fused ? param.device() : at::Device(at::kCPU)));
  }
  const ckpt::Tensor* tensor = saved.as_tensor();
  if (tensor == nullptr || tensor->numel() != 1) {
    mismatch(format(
        "'step' of the loaded state: expected a number, got '{}'",
        saved.type_name()));
  }
  const at::Tensor step = to_tensor(*tensor);
  if (step.is_complex()) {
    mismatch(
        "'step' of the loaded state: expected a number, got a complex one");
  }
  return is_fused ? step.to(param.device(), at::kFloat, false, true)
                  : step.clone();
}

at::Tensor loaded_moment(
    std::string_view key,
    const std::string& id,
    const ckpt::Value& saved,
    const at::Tensor& param) {
  if (saved.is_none()) {
    return {};
  }
  const ckpt::Tensor* tensor = saved.as_tensor();
  if (tensor == nullptr) {
    mismatch(format(
        "'{}' of parameter {}: expected a Tensor, got '{}'",
        key,
        id,
        saved.type_name()));
  }
  if (param.sizes() != at::IntArrayRef(tensor->sizes)) {
    mismatch(
        format(
            "'{}' of parameter {}: expected shape {}, got {}",
            key,
            id,
            shape_text(param.sizes()),
            shape_text(tensor->sizes)),
        "state is matched by position: give the parameters in the order of "
        "the saved run");
  }
  const at::Tensor value = to_tensor(*tensor);
  // Always a copy: the file's memory, or another optimizer's, stays its own.
  return value.to(
      param.device(),
      at::isFloatingType(param.scalar_type()) ? param.scalar_type()
                                              : value.scalar_type(),
      /*non_blocking=*/false,
      /*copy=*/true);
}

/// Whose state a saved id is.
struct Owner {
  at::Tensor param = {};
  const ParamGroup* group = nullptr;
};
using Owners = std::unordered_map<std::string, Owner>; // by `id_text`

/// What to do with a file of another optimizer; empty if it is none.
std::string other_kind_hint(
    const ckpt::Value& group,
    const OptimizerKind& kind) {
  const std::string name = kind_of_options(group);
  return name.empty() || name == kind.name
             ? std::string()
             : format(
                   "the options are those of {}; this optimizer is {}",
                   name,
                   kind.name);
}

/// `value` with numbers in place of tensors of one element: Python takes a
/// learning rate or a beta that is one. A tuple without them stays the object
/// that it is, which groups may share.
ckpt::Value plain_option(const ckpt::Value& value) {
  const auto is_tensor = [](const ckpt::Value& item) {
    return item.as_tensor() != nullptr;
  };
  const std::vector<ckpt::Value>* items =
      value.as_tuple() == nullptr ? nullptr : value.elements();
  if (items != nullptr) {
    if (std::ranges::none_of(*items, is_tensor)) {
      return value;
    }
    ckpt::Tuple tuple;
    for (const ckpt::Value& item : *items) {
      tuple.items.push_back(plain_option(item));
    }
    return tuple;
  }
  if (value.as_tensor() == nullptr) {
    return value;
  }
  const auto number = number_in(value);
  return number ? ckpt::Value(*number) : value;
}

/// The saved options with the live parameters: options of the file win.
ParamGroup loaded_group(
    const ckpt::Value& saved,
    const ParamGroup& live,
    const std::vector<NamedOption>& defaults,
    const OptimizerKind& kind) {
  const StateReader reader(saved, "a loaded parameter group");
  if (reader.items("params").size() != live.params.size()) {
    mismatch(
        "loaded state dict contains a parameter group that doesn't match the "
        "size of optimizer's group",
        format(
            "a group of the file has {}, that of the optimizer {}",
            counted(reader.items("params").size(), "parameter"),
            live.params.size()));
  }
  ParamGroup group = {.params = live.params};
  for (const auto& [key, value] : saved.as_dict()->items) {
    if (key.as_string() == nullptr) {
      mismatch("keys of a loaded parameter group: expected texts");
    }
    if (*key.as_string() != "params") {
      group.set(*key.as_string(), plain_option(value));
    }
  }
  const ckpt::Value* names = live.find("param_names");
  if (names != nullptr && group.find("param_names") == nullptr) {
    group.set("param_names", *names);
  }
  kind.complete_loaded(group);
  for (const NamedOption& option : defaults) {
    if (group.find(option.first) == nullptr) {
      mismatch(
          format("a loaded parameter group has no '{}'", option.first),
          other_kind_hint(saved, kind));
    }
  }
  try {
    kind.check(group);
  } catch (const Exception& e) {
    if (e.error().code == ErrorCode::kUnsupported) {
      throw;
    }
    mismatch(e.error().message);
  }
  return group;
}

void add_owners(
    Owners& owners,
    const ckpt::Value& saved,
    ParamGroup& group,
    const ParamGroup& live) {
  const StateReader reader(saved, "a loaded parameter group");
  const std::vector<ckpt::Value>& ids = reader.items("params");
  const std::vector<std::size_t> places = places_of(saved, live);
  if (!std::ranges::is_sorted(places)) {
    group.set("param_names", *live.find("param_names"));
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (id_text(ids[i]).empty()) {
      reader.refuse("params", "integers or names", ids[i]);
    }
    owners[id_text(ids[i])] = {
        .param = group.params[places[i]],
        .group = &group};
  }
}

void load_entry(
    ParamState& entry,
    const std::string& id,
    const ckpt::Value& saved,
    const ParamGroup& group,
    const OptimizerKind& kind) {
  const StateReader reader(saved, format("the state of parameter {}", id));
  for (const auto& [name, value] : saved.as_dict()->items) {
    const std::string* text = name.as_string();
    const auto key =
        text == nullptr
            ? kind.state_keys.end()
            : std::ranges::find(kind.state_keys, std::string_view(*text));
    if (key == kind.state_keys.end()) {
      mismatch(
          format(
              "state of parameter {} has '{}', which {} does not keep",
              id,
              text == nullptr ? "?" : escape(*text),
              kind.name),
          "the file is of another optimizer");
    }
    entry[*key] = *key == "step"
                      ? loaded_step(value, entry.param, group.flag("fused"))
                      : loaded_moment(*key, id, value, entry.param);
  }
  for (const std::string_view key : kind.state_keys) {
    if (!entry.tensors.empty() && kind.needs(key, group) &&
        !entry[key].defined()) {
      mismatch(format("state of parameter {} has no '{}'", id, key));
    }
  }
}

[[noreturn]] void no_groups(const ckpt::Value& saved) {
  const ckpt::Value* inner = ckpt::find_optim_state(saved);
  const bool is_empty = saved.as_dict()->items.empty();
  mismatch(
      "optimizer state has no 'param_groups'",
      inner != nullptr ? "give the entry of the checkpoint that holds it, "
                         "file[\"optimizer\"]"
      : is_empty       ? "it is empty: the file was saved without an optimizer"
                       : "");
}

/// A copy whose tensors do not alias a mapped file.
ckpt::Value owned(const ckpt::Value& value) {
  if (const ckpt::Tensor* tensor = value.as_tensor()) {
    return to_value(to_tensor(*tensor).clone());
  }
  const ckpt::Dict* dict = value.as_dict();
  if (dict == nullptr) {
    return value;
  }
  ckpt::Dict copy{.kind = dict->kind};
  for (const auto& [key, item] : dict->items) {
    copy.items.emplace_back(key, owned(item));
  }
  return copy;
}

StateTable loaded_state(
    const ckpt::Dict& saved,
    const Owners& owners,
    const OptimizerKind& kind) {
  StateTable table;
  for (const auto& [key, value] : saved.items) {
    const auto owner = owners.find(id_text(key));
    if (owner == owners.end()) {
      table.foreign.emplace_back(key, owned(value));
      continue;
    }
    const auto& [param, group] = owner->second;
    load_entry(
        table.of(param),
        escape(ckpt::key_text(key)),
        value,
        *group,
        kind);
  }
  return table;
}

// Python's KeyError.
[[noreturn]] void refuse_stray() {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "optim.save",
       .message = "the optimizer has the state of a parameter that is in none "
                  "of its groups now",
       .hint = "a parameter that is trained no longer stays in its group, with "
               "requires_grad_(false)"});
}

} // namespace

ckpt::Value pack(
    const std::vector<ParamGroup>& groups,
    const StateTable& state) {
  std::unordered_map<const c10::TensorImpl*, std::int64_t> ids;
  ckpt::List packed_groups;
  std::int64_t position = 0;
  for (const ParamGroup& group : groups) {
    ckpt::Dict packed;
    for (const NamedOption& option : group.options) {
      packed.items.emplace_back(option.first, option.second);
    }
    ckpt::List params;
    for (const at::Tensor& param : group.params) {
      const auto id = ids.try_emplace(param.unsafeGetTensorImpl(), position);
      params.items.emplace_back(id.first->second);
      ++position;
    }
    packed.items.emplace_back("params", std::move(params));
    packed_groups.items.emplace_back(std::move(packed));
  }
  ValueBuilder builder;
  ckpt::Dict packed_state;
  for (const ParamState& entry : state.entries) {
    ckpt::Dict tensors;
    for (const auto& [key, tensor] : entry.tensors) {
      tensors.items.emplace_back(
          key,
          tensor.defined() ? builder.tensor(tensor) : ckpt::Value());
    }
    const auto id = ids.find(entry.param.unsafeGetTensorImpl());
    if (id == ids.end()) {
      refuse_stray();
    }
    packed_state.items.emplace_back(id->second, std::move(tensors));
  }
  packed_state.items.insert(
      packed_state.items.end(),
      state.foreign.begin(),
      state.foreign.end());
  return ckpt::Value::dict(
      {{"state", std::move(packed_state)},
       {"param_groups", std::move(packed_groups)}});
}

Unpacked unpack(
    const ckpt::Value& given,
    const std::vector<ParamGroup>& live,
    const std::vector<NamedOption>& defaults,
    const OptimizerKind& kind) {
  const ckpt::Value saved = nested_state(given, live);
  const StateReader reader(saved, "optimizer state");
  if (!reader.has("param_groups")) {
    no_groups(saved);
  }
  const std::vector<ckpt::Value>& groups = reader.items("param_groups");
  if (groups.size() != live.size()) {
    mismatch(
        "loaded state dict has a different number of parameter groups",
        format(
            "the file has {}, the optimizer {}: give the parameters in the "
            "groups of the saved run",
            counted(groups.size(), "group"),
            live.size()));
  }
  refuse_other_groups(groups, live);
  Unpacked result;
  result.groups.reserve(groups.size()); // `Owner` keeps pointers
  Owners owners;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    result.groups.push_back(loaded_group(groups[i], live[i], defaults, kind));
    add_owners(owners, groups[i], result.groups.back(), live[i]);
  }
  result.state = loaded_state(reader.dict("state"), owners, kind);
  return result;
}

} // namespace lockstep::internal
