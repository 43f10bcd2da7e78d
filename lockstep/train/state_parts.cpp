// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/state_parts.h"

#include <concepts>
#include <mutex>
#include <optional>

#include <ATen/Context.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/optim/torch_optim_state.h"
#include "lockstep/tensor/rng.h"
#include "lockstep/tensor/state_dict.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kCpu = "cpu";

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
    raise(
        {.code = ErrorCode::kMismatch,
         .op = "train.resume",
         .message = format(
             "the state of generator '{}' must be a tensor, got {}",
             name,
             value->type_name()),
         .detail = "E_BAD_STATE"});
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

template <class T>
StatePart part_of(
    const std::string& key,
    T& number,
    std::optional<T> (*read)(const ckpt::Value&)) {
  return {
      .key = key,
      .save = [&number](ValueBuilder&) { return ckpt::Value(number); },
      .load =
          [key, &number, read](const ckpt::Value& saved) {
            const std::optional<T> value = read(saved);
            if (!value) {
              raise(
                  {.code = ErrorCode::kMismatch,
                   .op = "train.resume",
                   .message = format(
                       "'{}' must be a {}number, got {}",
                       key,
                       std::integral<T> ? "whole " : "",
                       saved.type_name()),
                   .detail = "E_BAD_STATE"});
            }
            number = *value;
          }};
}

} // namespace

StatePart number_part(const std::string& key, std::int64_t& number) {
  return part_of<std::int64_t>(key, number, [](const ckpt::Value& saved) {
    const std::int64_t* value = saved.as_int();
    return value == nullptr ? std::nullopt : std::optional(*value);
  });
}

StatePart number_part(const std::string& key, double& number) {
  return part_of<double>(key, number, [](const ckpt::Value& saved) {
    return saved.number();
  });
}

StatePart model_part(torch::nn::Module& model) {
  return {
      .key = "state_dict",
      .save =
          [&model](ValueBuilder& builder) {
            return builder.state_dict(state_dict(model));
          },
      .load =
          [&model](const ckpt::Value& saved) {
            load_state_dict(model, saved, {.strip_prefix = "module."});
          }};
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

StatePart scheduler_part(Scheduler& scheduler) {
  return {
      .key = "scheduler",
      .save = [&scheduler](ValueBuilder&) { return scheduler.state_dict(); },
      .load =
          [&scheduler](const ckpt::Value& saved) {
            scheduler.load_state_dict(saved);
          },
      .if_missing = IfMissing::kWarn};
}

StatePart generator_part(std::span<const c10::Device> devices) {
  const std::vector<c10::Device> others = own_generators(devices);
  return {
      .key = "rng",
      .save =
          [others](ValueBuilder& builder) {
            ckpt::Dict states;
            states.items.emplace_back(kCpu, builder.tensor(get_rng_state()));
            for (const c10::Device& device : others) {
              states.items.emplace_back(
                  device.str(),
                  builder.tensor(state_of(device)));
            }
            return ckpt::Value(std::move(states));
          },
      .load =
          [others](const ckpt::Value& saved) {
            if (const at::Tensor state = saved_state(saved, kCpu);
                state.defined()) {
              set_rng_state(state);
            }
            for (const c10::Device& device : others) {
              if (const at::Tensor state = saved_state(saved, device.str());
                  state.defined()) {
                set_state_of(device, state);
              }
            }
          },
      .if_missing = IfMissing::kWarn};
}

} // namespace lockstep::train
