// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/torch_memory.h"

#include <utility>

#include <torch/optim/optimizer.h>

#include "lockstep/optim/internal/torch_kinds.h"

namespace lockstep::internal {

namespace {

/// The default options, which derived classes may replace.
struct Defaults : torch::optim::Optimizer {
  static auto member() {
    return &Defaults::defaults_;
  }
};

} // namespace

std::vector<ParamGroup> torch_groups(const torch::optim::Optimizer& optimizer) {
  const TorchKind& kind = torch_kind(optimizer, "optim.options");
  std::vector<ParamGroup> groups;
  for (const auto& group : optimizer.param_groups()) {
    groups.push_back(
        {.params = group.params(), .options = kind.options(group.options())});
  }
  return groups;
}

std::shared_ptr<TwoSidedGroups> find_memory(
    const torch::optim::Optimizer& optimizer) {
  return torch_kind(optimizer, "optim.options").memory(optimizer.defaults());
}

std::shared_ptr<TwoSidedGroups> memory_of(torch::optim::Optimizer& optimizer) {
  if (auto memory = find_memory(optimizer)) {
    return memory;
  }
  auto memory = std::make_shared<TwoSidedGroups>("LibTorch's optimizer");
  memory->groups = torch_groups(optimizer);
  memory->mark_as_seen(memory->groups);
  auto options = torch_kind(optimizer, "optim.options")
                     .remembering(optimizer.defaults(), memory);
  if (options != nullptr) {
    optimizer.*Defaults::member() = std::move(options);
  }
  return memory;
}

std::vector<ParamGroup> take_changes(
    const torch::optim::Optimizer& optimizer,
    TwoSidedGroups& memory) {
  std::vector<ParamGroup> theirs = torch_groups(optimizer);
  memory.take_params(theirs);
  memory.take(theirs);
  return theirs;
}

} // namespace lockstep::internal
