// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of DataParallel as functions of their own, as in
// torch.nn.parallel. Gradients flow through all of them; each call makes its
// replicas and threads anew, which DataParallel does not.
//   const auto devices = parse_devices("sim*2");
//   auto shards = parallel::scatter(batch, devices);
//   auto replicas = parallel::replicate(net, devices);
//   auto outputs = parallel::parallel_apply(replicas, shards, devices);
//   auto joined = parallel::gather(outputs, devices.front());
//
// Tensors travel in flat lists; structures of tensors are taken apart above
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/structure.h"

#pragma GCC visibility push(default)
namespace lockstep::parallel {

/// One list per device used: chunks of each input along `dim`, on that device.
/// Pieces have ceil(N / devices) rows, so 10 rows over 4 devices give 3, 3, 3,
/// 1 and 2 rows over 4 devices give two lists. Undefined tensors are repeated;
/// if all are, there is one list per device. Without inputs: one empty list.
/// Gradients flow back to `inputs`. Chunks that come from the host are copied
/// in `streams`, one per device, if there are any (copy_in_stream of
/// device/internal/streams.h), else in the caller's.
/// Ownership: a chunk on the input's own device shares its memory.
/// Errors: throws kInvalidArgument if inputs give different numbers of pieces
/// (PyTorch drops rows there), and what torch::chunk throws.
std::vector<TensorList> scatter(
    const TensorList& inputs,
    std::span<const c10::Device> devices,
    std::int64_t dim = 0,
    std::span<const c10::Stream> streams = {});

/// Replicas' results can be joined if they have the same structure, in words.
/// Errors: throws kInvalidArgument without any, kMismatch for the first place
/// that differs from place 0.
void check_same_forms(std::span<const std::string> forms);

/// Numbers of several replicas cannot be joined: each is that of a part of the
/// batch. `numbers`: as `structure::number_in` the result of each.
/// Errors: throws kUnsupported for the first one.
void check_no_numbers(std::span<const std::string> numbers);

/// Joins one output of all replicas along `dim` on `device`. Scalars become a
/// vector, with PyTorch's warning; an undefined first part gives an undefined
/// result. The result never shares memory with a part; gradients flow to them.
at::Tensor
gather(const TensorList& parts, c10::Device device, std::int64_t dim = 0);

/// How `replicate` copies.
struct ReplicateOptions {
  /// The replicas' parameters are leaves of their own: no gradient comes back.
  bool detach = false;
  /// Makes replicas of a module whose `clone()` does not work.
  ModuleFactory factory = {};
};

/// The parts of `value` for each device used, as the overload for tensors;
/// values are repeated. Without tensors: one copy a device.
/// Errors: as there.
template <class T>
std::vector<T> scatter(
    const T& value,
    std::span<const c10::Device> devices,
    std::int64_t dim = 0) {
  TensorList tensors = structure::flatten(value);
  if (tensors.empty()) {
    return std::vector<T>(devices.size(), value);
  }
  std::vector<T> parts;
  for (const TensorList& shard : parallel::scatter(tensors, devices, dim)) {
    parts.push_back(structure::rebuild(value, shard));
  }
  return parts;
}

/// One value out of those of all replicas: each tensor joined along `dim`.
/// Errors: throws kInvalidArgument without outputs, kMismatch if they differ in
/// structure: dictionaries with different keys, lists of different lengths;
/// kUnsupported for a number among several.
template <class T>
  requires kIsJoinable<T>
T gather(
    const std::vector<T>& outputs,
    c10::Device device,
    std::int64_t dim = 0) {
  std::vector<std::string> forms;
  std::vector<std::string> numbers;
  std::vector<TensorList> tensors;
  for (const T& output : outputs) {
    forms.push_back(structure::describe(output));
    numbers.push_back(structure::number_in(output));
    tensors.push_back(structure::flatten(output));
  }
  check_no_numbers(numbers);
  check_same_forms(forms);
  TensorList joined;
  for (std::size_t k = 0; k < tensors.front().size(); ++k) {
    TensorList parts;
    for (const TensorList& of_replica : tensors) {
      parts.push_back(of_replica[k]);
    }
    joined.push_back(parallel::gather(parts, device, dim));
  }
  return structure::rebuild(outputs.front(), joined);
}

/// `replicate` behind a base-class reference.
std::vector<std::shared_ptr<torch::nn::Module>> replicate_module(
    std::shared_ptr<torch::nn::Module> module,
    std::span<const c10::Device> devices,
    ReplicateOptions options);

/// One module per device: `module` itself on the first, where it must be, and
/// copies with its values on the others. Gradients of a copy's parameters flow
/// to the module's, unless detached. Replicas of a module that was given layers
/// or tensors are to be called by `parallel_apply`, which knows what they
/// share. Errors: throws kMismatch if the module is not on the first device,
/// kUnsupported if it cannot be cloned and there is no factory.
template <class M>
std::vector<std::shared_ptr<M>> replicate(
    std::shared_ptr<M> module,
    std::span<const c10::Device> devices,
    ReplicateOptions options = {}) {
  std::vector<std::shared_ptr<M>> replicas;
  for (const auto& replica :
       replicate_module(std::move(module), devices, std::move(options))) {
    replicas.push_back(std::dynamic_pointer_cast<M>(replica));
  }
  return replicas;
}

/// Runs task(i), which calls modules[i], for each device at the same time, in
/// threads with the caller's modes, and waits. One after the other where
/// `replicate` warned of a child that its replicas share.
/// Errors: throws ReplicaError for the lowest task that threw; kMismatch if
/// there are more or fewer devices than modules.
void run_on_devices(
    std::span<const std::shared_ptr<torch::nn::Module>> modules,
    std::span<const c10::Device> devices,
    const std::function<void(std::size_t)>& task);

template <class T>
struct IsTuple : std::false_type {};
template <class... Ts>
struct IsTuple<std::tuple<Ts...>> : std::true_type {};

/// `module(*input)` for a tuple, `module(input)` for anything else.
template <class M, class Input>
auto call_with(M& module, const Input& input) {
  if constexpr (IsTuple<Input>::value) {
    return std::apply(
        [&module](const auto&... args) { return module.forward(args...); },
        input);
  } else {
    return module.forward(input);
  }
}

/// Calls modules[i] with inputs[i] on devices[i], all at the same time. An
/// input is one argument, or a tuple of all. No devices: the CPU.
/// Errors: as `run_on_devices`.
template <class M, class Input>
auto parallel_apply(
    const std::vector<std::shared_ptr<M>>& modules,
    const std::vector<Input>& inputs,
    std::span<const c10::Device> devices = {}) {
  using Result = decltype(call_with(*modules.front(), inputs.front()));
  const std::vector<c10::Device> cpu(
      modules.size(),
      c10::Device(c10::DeviceType::CPU));
  const std::vector<std::shared_ptr<torch::nn::Module>> called(
      modules.begin(),
      modules.end());
  std::vector<std::unique_ptr<Result>> results(modules.size());
  const auto task = [&](std::size_t i) {
    results[i] = std::make_unique<Result>(call_with(*modules[i], inputs.at(i)));
  };
  run_on_devices(called, devices.empty() ? cpu : devices, task);
  std::vector<Result> values;
  values.reserve(results.size());
  for (auto& result : results) {
    values.push_back(std::move(*result));
  }
  return values;
}

/// One call of `module` over the devices of `options`. DataParallel keeps what
/// this makes anew: replicas and threads.
/// Errors: as `DataParallelImpl::forward`.
template <class M, class... Args>
auto data_parallel(
    std::shared_ptr<M> module,
    const DataParallelOptions& options,
    Args&&... args) {
  return DataParallelImpl<M>(std::move(module), options)
      .forward(std::forward<Args>(args)...);
}

} // namespace lockstep::parallel
#pragma GCC visibility pop
