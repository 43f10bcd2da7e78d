// SPDX-License-Identifier: BSD-3-Clause
#include <unordered_set>

#include <torch/cuda.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/walk.h"
#include "lockstep/tensor/checkpoint.h"

namespace lockstep {
namespace {

using StorageSet = std::unordered_set<ckpt::Storage*>;

StorageSet storages_in(const ckpt::Value& root) {
  StorageSet storages;
  ckpt::NodeWalk().run(root, [&storages](const ckpt::Value& node) {
    const ckpt::Tensor* tensor = node.as_tensor();
    if (tensor != nullptr && tensor->storage) {
      storages.insert(tensor->storage.get());
    }
    return true;
  });
  return storages;
}

[[noreturn]] void unavailable(std::string message) {
  raise(
      {.code = ErrorCode::kUnavailable,
       .op = "tensor.load",
       .message = std::move(message),
       .hint = "load with .map_location = \"cpu\""});
}

struct Apply {
  const std::string& location;

  std::string operator()(std::monostate /*as_stored*/) const {
    return location;
  }
  std::string operator()(const std::string& device) const {
    return device;
  }
  std::string operator()(const MapLocation::Map& map) const {
    const auto found = map.find(location);
    return found == map.end() ? location : found->second;
  }
  std::string operator()(const MapLocation::Function& function) const {
    const std::optional<c10::Device> device = function(location);
    return device ? device->str() : location;
  }
};

} // namespace

void check_cuda_location(int index, bool is_available, int device_count) {
  if (!is_available) {
    unavailable(
        "Attempting to deserialize object on a CUDA device but "
        "torch.cuda.is_available() is False. If you are running on a CPU-only "
        "machine, please use torch.load with map_location=torch.device('cpu') "
        "to map your storages to the CPU.");
  }
  if (index >= device_count) {
    unavailable(format(
        "Attempting to deserialize object on CUDA device {} but "
        "torch.cuda.device_count() is {}. Please use torch.load with "
        "map_location to map your storages to an existing device.",
        index,
        device_count));
  }
}

c10::Device location_device(const std::string& location) {
  std::optional<c10::Device> device;
  try {
    device.emplace(location);
  } catch (const c10::Error&) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "tensor.load",
         .message = format(
             "don't know how to restore data location of "
             "torch.storage.UntypedStorage (tagged with {})",
             escape(location)),
         .hint = "load with .map_location = \"cpu\""});
  }
  if (device->is_cuda()) {
    check_cuda_location(
        device->index(),
        torch::cuda::is_available(),
        static_cast<int>(torch::cuda::device_count()));
  }
  return *device;
}

std::string MapLocation::apply(const std::string& location) const {
  return location_device(std::visit(Apply{location}, rule_)).str();
}

void map_locations(const ckpt::Value& value, const MapLocation& rule) {
  // Checked for all before any is changed.
  std::vector<std::pair<ckpt::Storage*, std::string>> changes;
  for (ckpt::Storage* storage : storages_in(value)) {
    changes.emplace_back(storage, rule.apply(storage->location));
  }
  for (auto& [storage, location] : changes) {
    storage->location = std::move(location);
  }
}

} // namespace lockstep
