// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <type_traits>

#include <torch/optim/optimizer.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/internal/packed_state.h"
#include "lockstep/optim/internal/torch_kinds.h"
#include "lockstep/optim/internal/torch_memory.h"
#include "lockstep/optim/torch_optimizer.h"

namespace lockstep {

namespace {

using internal::TorchKind;
using torch::optim::OptimizerParamGroup;
using StateMap = std::remove_cvref_t<
    decltype(std::declval<torch::optim::Optimizer&>().state())>;

bool has_content(const ParamState& entry) {
  return std::ranges::any_of(entry.tensors, [](const auto& item) {
    return item.second.defined();
  });
}

StateTable state_of(
    const torch::optim::Optimizer& optimizer,
    const TorchKind& kind) {
  StateTable table;
  for (const OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const at::Tensor& param : group.params()) {
      const auto found = optimizer.state().find(param.unsafeGetTensorImpl());
      if (found == optimizer.state().end() || found->second == nullptr) {
        continue;
      }
      ParamState entry = {.param = param};
      kind.read_state(*found->second, entry);
      if (has_content(entry)) {
        table.of(param) = std::move(entry);
      }
    }
  }
  return table;
}

/// LibTorch's state. Where Python makes it anew at the next step, so does
/// LibTorch, but for optimizers that have it from the start.
StateMap to_map(
    const torch::optim::Optimizer& optimizer,
    StateTable& table,
    const TorchKind& kind) {
  StateMap map;
  for (ParamState& entry : table.entries) {
    if (has_content(entry)) {
      map[entry.param.unsafeGetTensorImpl()] = kind.make_state(entry);
    }
  }
  if (kind.first_state == nullptr) {
    return map;
  }
  for (const OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const at::Tensor& param : group.params()) {
      auto& state = map[param.unsafeGetTensorImpl()];
      if (state == nullptr) {
        state = kind.first_state(optimizer, param);
      }
    }
  }
  return map;
}

} // namespace

ckpt::Value internal::pack_torch(
    const torch::optim::Optimizer& optimizer,
    const std::vector<ParamGroup>& groups) {
  return pack(groups, state_of(optimizer, torch_kind(optimizer, "optim.save")));
}

ckpt::Value state_dict(const torch::optim::Optimizer& optimizer) {
  static_cast<void>(internal::torch_kind(optimizer, "optim.save"));
  return internal::pack_torch(optimizer, param_groups(optimizer));
}

std::vector<ParamGroup> load_state_dict(
    torch::optim::Optimizer& optimizer,
    const ckpt::Value& state) {
  const TorchKind& kind = internal::torch_kind(optimizer, "optim.load");
  auto [loaded, table] = internal::unpack(
      state,
      internal::torch_groups(optimizer),
      kind.options(optimizer.defaults()),
      kind.rules);
  StateMap map = to_map(optimizer, table, kind);
  // Nothing below fails: the rules have read every option.
  set_options(optimizer, loaded);
  optimizer.state() = std::move(map);
  const auto memory = internal::memory_of(optimizer);
  memory->groups = loaded;
  memory->mark_as_seen(internal::torch_groups(optimizer));
  return std::move(loaded);
}

std::vector<ParamGroup> param_groups(const torch::optim::Optimizer& optimizer) {
  const auto memory = internal::find_memory(optimizer);
  if (memory == nullptr) {
    return internal::torch_groups(optimizer);
  }
  internal::take_changes(optimizer, *memory);
  return memory->groups;
}

void load_state(torch::optim::Optimizer& optimizer, const ckpt::Value& state) {
  static_cast<void>(load_state_dict(optimizer, state));
}

void set_options(
    torch::optim::Optimizer& optimizer,
    const std::vector<ParamGroup>& groups) {
  const TorchKind& kind = internal::torch_kind(optimizer, "optim.options");
  const std::size_t expected = optimizer.param_groups().size();
  if (groups.size() != expected) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "optim.options",
         .message = format(
             "param_groups() has {}, expected {} as in LibTorch's optimizer",
             counted(groups.size(), "parameter group"),
             expected),
         .hint = "add groups to LibTorch's optimizer: they appear here"});
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    kind.set_options(optimizer.param_groups()[i].options(), groups[i]);
  }
}

} // namespace lockstep
