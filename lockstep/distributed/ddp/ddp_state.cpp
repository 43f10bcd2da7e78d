// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/ddp/ddp_state.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/ddp/hook_adapter.h"
#include "lockstep/tensor/internal/module_children.h"
#include "lockstep/tensor/internal/same_values.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep {
namespace {

using dist::internal::DdpParts;
using dist::internal::NamedTensor;
using dist::internal::parts_of;
using dist::internal::tensors_of;
using Known = std::unordered_map<const c10::TensorImpl*, at::Tensor>;

// What a pass asks of the module, in one walk that copies no name, as
// named_parameters() and named_buffers() do.
struct Look {
  const Known& known;
  /// A parameter that takes gradients and is not known.
  at::Tensor unknown = {};
  /// All that are registered.
  std::vector<at::Tensor> buffers = {};

  void visit(const torch::nn::Module& module) {
    for (const auto& item : own_parameters_of(module)) {
      const at::Tensor& own = item.value();
      if (!unknown.defined() && own.defined() && own.requires_grad() &&
          !known.contains(own.unsafeGetTensorImpl())) {
        unknown = own;
      }
    }
    for (const auto& item : own_buffers_of(module)) {
      buffers.push_back(item.value());
    }
    for (const auto& child : own_children_of(module)) {
      if (child.value() != nullptr) {
        visit(*child.value());
      }
    }
  }
};

bool are_same(
    const std::vector<at::Tensor>& a,
    const std::vector<at::Tensor>& b) {
  return std::ranges::equal(a, b, [](const at::Tensor& x, const auto& y) {
    return x.is_same(y);
  });
}

std::vector<std::uint32_t> versions_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::uint32_t> versions;
  versions.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    versions.push_back(tensor.is_inference() ? 0 : tensor._version());
  }
  return versions;
}

} // namespace

void DistributedDataParallelBase::State::share_parameters(
    const DdpParts& parts) const {
  collective("ddp", [&] {
    c10d::verify_params_across_processes(
        c10d_group(),
        tensors_of(parts.trained),
        std::nullopt);
    auto all = dist::internal::detached(parts.parameters);
    const auto buffers = dist::internal::detached(parts.buffers);
    all.insert(all.end(), buffers.begin(), buffers.end());
    c10d::broadcast_coalesced(
        c10d_group(),
        all,
        dist::internal::kBroadcastBytes,
        0);
  });
}

void DistributedDataParallelBase::State::reduce_by(
    const DdpParts& parts,
    dist::internal::Buckets buckets) {
  // The hooks of an earlier one go first.
  first_backward = nullptr;
  logger = nullptr;
  reducer = nullptr;
  parameters = parts.parameters;
  trained = dist::internal::tensors_of(parts.trained);
  known.clear();
  for (const at::Tensor& parameter : trained) {
    known.emplace(parameter.unsafeGetTensorImpl(), parameter);
  }
  reducer = dist::internal::make_reducer(
      parts,
      options,
      c10d_group(),
      std::move(buckets));
  logger = std::make_shared<c10d::Logger>(reducer);
  reducer->set_logger(logger);
  logger->set_construction_data_and_log(
      class_name(*module),
      /*device_ids=*/{},
      /*output_device=*/-1,
      options.forward_sync_buffers,
      /*has_sync_bn=*/parts.sync_batch_norms > 0,
      options.static_graph);
  if (options.static_graph) {
    reducer->set_static_graph();
    first_backward = std::make_shared<dist::internal::FirstBackward>();
    first_backward->at_end = [kept = reducer] { kept->delay_all_reduce(); };
  }
  use_hook();
}

// The graph of an earlier forward pass may hold a buffer. Where nothing that
// LibTorch counts changed it since, as in BatchNorm's training, its version
// must not change, as if nothing had been written: Python's never does. But if
// this rank's forward wrote it (`scale.copy_(x.max())`), and rank `src` has
// another value, the gradient of that graph would be that of another output:
// the new version lets backward say so. Not on devices, for which a comparison
// would wait.
void DistributedDataParallelBase::State::sync_buffers(int src) {
  const at::NoGradGuard no_grad;
  if (synced.empty()) { // their modules were taken out
    return;
  }
  const auto versions = versions_of(synced);
  std::vector<at::Tensor> written(synced.size());
  for (std::size_t i = 0; i < synced.size(); ++i) {
    const bool is_counted =
        synced_versions.empty() || synced_versions[i] != versions[i];
    if (is_counted && group.rank() != src && synced[i].is_cpu()) {
      written[i] = synced[i].detach().clone();
    }
  }
  collective("sync_buffers", [&] {
    c10d::broadcast_coalesced(
        c10d_group(),
        synced,
        dist::internal::kBroadcastBytes,
        src);
  });
  for (std::size_t i = 0; i < synced.size(); ++i) {
    if (synced[i].is_inference()) {
      continue;
    }
    auto counter = torch::autograd::impl::version_counter(synced[i]);
    counter.set_version(versions[i]);
    if (written[i].defined() && !same_values(written[i], synced[i])) {
      counter.bump();
    }
  }
  synced_versions = versions_of(synced);
}

void DistributedDataParallelBase::State::refuse_hook(std::string message) {
  logger->set_error_and_log(message);
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "dist.ddp",
       .message = std::move(message),
       .detail = "E_COMM_HOOK"});
}

void DistributedDataParallelBase::State::register_hook(dist::CommHook given) {
  if (!given.run) {
    refuse_hook("Communication hook must be callable.");
  }
  if (hook.run) {
    refuse_hook(
        "register_comm_hook or register_builtin_comm_hook can only be called "
        "once.");
  }
  if (hooks_are_compared) {
    refuse_hook("a communication hook is registered before the first step");
  }
  hook = std::move(given);
  use_hook();
}

void DistributedDataParallelBase::State::use_hook() {
  if (hook.run) {
    logger->set_comm_hook(hook.name);
    reducer->register_comm_hook(dist::internal::adapt(hook, group));
  }
}

void DistributedDataParallelBase::State::check_first_pass() const {
  if (first_backward != nullptr && !first_backward->has_come && !averages) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.ddp",
         .message = "static_graph learns the graph in its first pass, which "
                    "cannot be one of no_sync",
         .hint = "make one pass without no_sync first, for example of a "
                 "smaller batch, or leave static_graph out",
         .detail = "E_COLLECTIVE_ARGUMENT"});
  }
}

bool DistributedDataParallelBase::State::look_at_module() {
  Look look{.known = known};
  look.visit(*module);
  const bool has_same_buffers =
      options.ignored.empty() && are_same(look.buffers, registered);
  if (!has_same_buffers) {
    auto found = tensors_of(dist::internal::buffers_of(*module, options));
    if (!are_same(found, synced)) {
      synced = std::move(found);
      synced_versions.clear();
    }
    registered = std::move(look.buffers);
  }
  return !look.unknown.defined();
}

void DistributedDataParallelBase::State::refuse_unknown() {
  for (const NamedTensor& part : parts_of(*module, options).trained) {
    if (known.contains(part.tensor.unsafeGetTensorImpl())) {
      continue;
    }
    const bool was_frozen =
        std::ranges::any_of(parameters, [&part](const NamedTensor& other) {
          return other.tensor.is_same(part.tensor);
        });
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "dist.ddp",
         .message = format(
             "parameter '{}' {} since the module was wrapped: its gradients "
             "would not be averaged",
             part.name,
             was_frozen ? "was thawed" : "came into the module"),
         .hint = "thaw and replace layers before they are wrapped, or wrap the "
                 "module again",
         .detail = "E_CANNOT_WRAP"});
  }
  for (const at::Tensor& ignored : module->parameters()) {
    if (ignored.requires_grad()) {
      known.emplace(ignored.unsafeGetTensorImpl(), ignored);
    }
  }
}

void DistributedDataParallelBase::State::check_own_gradients() const {
  const auto refuse = [](std::string message, std::string hint) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "dist.average_gradients",
         .message = std::move(message),
         .hint = std::move(hint),
         .detail = "E_AVERAGE"});
  };
  if (join.enable || options.static_graph) {
    refuse(
        format(
            "gradients are averaged by passes {}",
            join.enable ? "inside join" : "with static_graph"),
        "make the last pass without no_sync");
  }
  const auto name_of = [this](const at::Tensor& parameter) {
    const auto named =
        std::ranges::find_if(parameters, [&](const NamedTensor& other) {
          return other.tensor.is_same(parameter);
        });
    return named == parameters.end() ? std::string() : named->name;
  };
  bool is_any = false;
  for (const at::Tensor& parameter : trained) {
    const at::Tensor& gradient = parameter.grad();
    const bool has_gradient = parameter.requires_grad() && gradient.defined();
    is_any = is_any || has_gradient;
    if (has_gradient && gradient.layout() != at::kStrided) {
      refuse(
          format("the gradient of '{}' is sparse", name_of(parameter)),
          "make the last pass without no_sync");
    }
    if (!has_gradient && !options.find_unused_parameters) {
      refuse(
          format(
              "parameter '{}' has no gradient on this rank",
              name_of(parameter)),
          "find_unused_parameters allows parameters that have no part in the "
          "loss");
    }
  }
  if (!is_any) {
    refuse("no parameter has a gradient", "make a backward pass before");
  }
}

void DistributedDataParallelBase::State::compare_hooks() {
  if (std::exchange(hooks_are_compared, true) ||
      group.impl().has_python_ranks) {
    return;
  }
  dist::internal::check_equal(
      group.impl(),
      format("comm_hook: {}", hook.run ? hook.name : "none"));
}

} // namespace lockstep
