// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/torch_memory.h"

#include <utility>

#include <torch/optim/optimizer.h>

#include "lockstep/optim/internal/torch_kinds.h"

namespace lockstep::internal {

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
  const auto& groups = optimizer.param_groups();
  return groups.empty() ? nullptr
                        : torch_kind(optimizer, "optim.options")
                              .memory(groups.front().options());
}

std::shared_ptr<TwoSidedGroups> memory_of(torch::optim::Optimizer& optimizer) {
  if (auto memory = find_memory(optimizer)) {
    return memory;
  }
  auto memory = std::make_shared<TwoSidedGroups>("LibTorch's optimizer");
  memory->groups = torch_groups(optimizer);
  memory->mark_as_seen(memory->groups);
  if (!optimizer.param_groups().empty()) {
    auto& first = optimizer.param_groups().front();
    auto options = torch_kind(optimizer, "optim.options")
                       .remembering(first.options(), memory);
    if (options != nullptr) {
      first.set_options(std::move(options));
    }
  }
  return memory;
}

} // namespace lockstep::internal
