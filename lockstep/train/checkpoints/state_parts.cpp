// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/state_parts.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/torch_optimizer.h"
#include "lockstep/tensor/checkpoint.h"
#include "lockstep/tensor/rng.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kRanks = "ranks";

[[noreturn]] void bad_state(std::string message) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "train.resume",
       .message = std::move(message),
       .detail = "E_BAD_STATE"});
}

at::Tensor state_of(const c10::Device& device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_state_of(const c10::Device& device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

/// The tensor under `name`, on the CPU; undefined if there is none.
at::Tensor saved_state(const ckpt::Value& saved, std::string_view name) {
  const ckpt::Value* value = saved.find(name);
  if (value == nullptr) {
    return {};
  }
  if (value->as_tensor() == nullptr) {
    bad_state(format(
        "the state of generator '{}' must be a tensor, got {}",
        name,
        value->type_name()));
  }
  return to_tensor(*value->as_tensor());
}

/// Each device once, without those of the CPU.
std::vector<c10::Device> own_generators(std::span<const c10::Device> devices) {
  std::vector<c10::Device> unique;
  for (const c10::Device& device : devices) {
    const bool is_new =
        std::ranges::find(unique, device) == unique.end() && !device.is_cpu();
    if (is_new) {
      unique.push_back(device);
    }
  }
  return unique;
}

/// The generators of each rank, in the order of the ranks: a list of tensors,
/// the CPU's first.
ckpt::Value states_of_ranks(
    const std::vector<c10::Device>& devices,
    const dist::ProcessGroup& group,
    ValueBuilder& builder) {
  std::vector<at::Tensor> own{get_rng_state()};
  for (const c10::Device& device : devices) {
    own.push_back(state_of(device));
  }
  std::vector<ckpt::List> ranks(static_cast<std::size_t>(group.size()));
  for (const at::Tensor& state : own) {
    const auto all = group.all_gather_bytes(
        {static_cast<const std::byte*>(state.const_data_ptr()),
         static_cast<std::size_t>(state.numel())});
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      at::Tensor copy = at::empty(
          {static_cast<std::int64_t>(all[rank].size())},
          at::TensorOptions(at::kByte));
      std::ranges::copy(
          all[rank],
          static_cast<std::byte*>(copy.mutable_data_ptr()));
      ranks[rank].items.push_back(builder.tensor(copy));
    }
  }
  ckpt::List list;
  for (ckpt::List& states : ranks) {
    list.items.emplace_back(std::move(states));
  }
  return list;
}

/// What one process saved is rank 0's.
void load_generators(
    const ckpt::Value& saved,
    const std::vector<c10::Device>& devices,
    int rank) {
  if (rank > 0) {
    return;
  }
  if (const at::Tensor state = saved_state(saved, kCpu); state.defined()) {
    set_rng_state(state);
  }
  for (const c10::Device& device : devices) {
    if (const at::Tensor state = saved_state(saved, device.str());
        state.defined()) {
      set_state_of(device, state);
    }
  }
}

/// A rank has other devices in another run: its generators go by their order.
void load_own_generators(
    const ckpt::Value& ranks,
    const std::vector<c10::Device>& devices,
    int rank) {
  const ckpt::List* list = ranks.as_list();
  const auto index = static_cast<std::size_t>(rank);
  const ckpt::List* own = list != nullptr && index < list->items.size()
                              ? list->items[index].as_list()
                              : nullptr;
  if (own == nullptr) { // there were fewer ranks
    return;
  }
  for (std::size_t i = 0; i < own->items.size() && i <= devices.size(); ++i) {
    const ckpt::Tensor* state = own->items[i].as_tensor();
    if (state == nullptr) {
      bad_state(format("the generators of rank {} must be tensors", rank));
    }
    i == 0 ? set_rng_state(to_tensor(*state))
           : set_state_of(devices[i - 1], to_tensor(*state));
  }
}

} // namespace

StatePart model_part(torch::nn::Module& model) {
  return {
      .key = "state_dict",
      .save =
          [&model](ValueBuilder& builder) {
            return builder.state_dict(state_dict(model));
          },
      .load =
          [&model](const ckpt::Value& saved) { load_fitting(model, saved); }};
}

StatePart optimizer_part(Optimizer& optimizer) {
  return {
      .key = "optimizer",
      .save = [&optimizer](ValueBuilder&) { return optimizer.state_dict(); },
      .load =
          [&optimizer](const ckpt::Value& saved) {
            optimizer.load_state_dict(saved);
          }};
}

StatePart optimizer_part(torch::optim::Optimizer& optimizer) {
  // One that cannot be saved is refused now, not after hours.
  static_cast<void>(state_dict(optimizer));
  return {
      .key = "optimizer",
      .save = [&optimizer](ValueBuilder&) { return state_dict(optimizer); },
      .load =
          [&optimizer](const ckpt::Value& saved) {
            load_state_dict(optimizer, saved);
          }};
}

StatePart scheduler_part(Scheduler& scheduler, std::string key) {
  return {
      .key = std::move(key),
      .save = [&scheduler](ValueBuilder&) { return scheduler.state_dict(); },
      .load =
          [&scheduler](const ckpt::Value& saved) {
            scheduler.load_state_dict(saved);
          },
      .if_missing = IfMissing::kWarn};
}

StatePart generator_part(
    std::span<const c10::Device> devices,
    const dist::ProcessGroup& group) {
  const std::vector<c10::Device> others = own_generators(devices);
  return {
      .key = "rng",
      .save =
          [others, group](ValueBuilder& builder) {
            ckpt::Dict states;
            states.items.emplace_back(kCpu, builder.tensor(get_rng_state()));
            for (const c10::Device& device : others) {
              states.items.emplace_back(
                  device.str(),
                  builder.tensor(state_of(device)));
            }
            if (group.size() > 1) {
              states.items.emplace_back(
                  kRanks,
                  states_of_ranks(others, group, builder));
            }
            return ckpt::Value(std::move(states));
          },
      .load =
          [others, group](const ckpt::Value& saved) {
            const ckpt::Value* ranks = saved.find(kRanks);
            if (group.size() == 1 || ranks == nullptr) {
              load_generators(saved, others, group.rank());
            } else {
              load_own_generators(*ranks, others, group.rank());
            }
          },
      .if_missing = IfMissing::kWarn};
}

} // namespace lockstep::train
