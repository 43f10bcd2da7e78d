// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/data_parallel.h"

#include <algorithm>

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

std::vector<c10::Device> choose_devices(const DataParallelOptions& options) {
  const std::string type = accelerator_type();
  if (options.device_ids.empty()) {
    if (!options.devices.is_empty()) {
      return options.devices.resolve();
    }
    return parse_devices(type.empty() ? "cpu" : type);
  }
  if (!options.devices.is_empty()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "parallel.wrap",
         .message = "both devices and device_ids are given",
         .hint = "device_ids = {1, 3} is short for devices = \"cuda:1,3\""});
  }
  std::vector<std::string> numbers;
  numbers.reserve(options.device_ids.size());
  for (const std::int64_t id : options.device_ids) {
    numbers.push_back(std::to_string(id));
  }
  return parse_devices(
      (type.empty() ? "cuda" : type) + ":" + join(numbers, ","));
}

// Python warns below this ratio of the smallest to the largest memory.
constexpr double kBalanced = 0.75;

void warn_if_unbalanced(std::span<const c10::Device> devices) {
  if (devices.size() < 2 || devices.front().is_cpu()) {
    return;
  }
  const auto memory = [](const c10::Device& device) {
    return static_cast<double>(
        at::accelerator::getMemoryInfo(device.index()).second);
  };
  const auto [least, most] = std::ranges::minmax(devices, {}, memory);
  if (memory(least) < kBalanced * memory(most)) {
    TORCH_WARN(
        "There is an imbalance between your GPUs. You may want to exclude GPU ",
        static_cast<int>(least.index()),
        " which has less than 75% of the memory or cores of GPU ",
        static_cast<int>(most.index()),
        ". You can do so by setting the device_ids argument to DataParallel, "
        "or by setting the CUDA_VISIBLE_DEVICES environment variable.");
  }
}

// LibTorch's clone() makes such a module anew, in another way than it is.
void warn_of_replaced_tensors(const torch::nn::Module& module) {
  const std::vector<std::string> names = replaced_tensors(module);
  if (!names.empty()) {
    TORCH_WARN(format(
        "no member holds the registered '{}'. If it was replaced with '=' "
        "(b->weight = a->weight), replicas use what is registered: copy values "
        "with copy_() under torch::NoGradGuard; share a layer by registering "
        "it twice, register_module(\"b\", a), or use a->weight in forward",
        join(names, "', '")));
  }
}

} // namespace

DataParallelBase::DataParallelBase(
    const std::shared_ptr<torch::nn::Module>& module,
    const DataParallelOptions& options,
    ModuleFactory default_factory)
    : Module("DataParallel") {
  if (module == nullptr) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "parallel.wrap",
         .message = "the module is null"});
  }
  warn_of_replaced_children(*module);
  warn_of_replaced_tensors(*module);
  register_module("module", module);
  const std::vector<c10::Device> devices = choose_devices(options);
  warn_if_unbalanced(devices);
  group_ = std::make_unique<ReplicaGroup>(
      module,
      devices,
      options,
      std::move(default_factory));
}

DataParallelBase::~DataParallelBase() = default;

std::span<const c10::Device> DataParallelBase::devices() const {
  return group_->devices();
}

void DataParallelBase::raise_wrong_type(const torch::nn::Module& module) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "parallel.module",
       .message = format(
           "the wrapped module is a {}, not the type asked for",
           module.name())});
}

} // namespace lockstep
