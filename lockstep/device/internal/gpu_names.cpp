// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/internal/gpu_names.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lockstep/base/internal/shared_library.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

// The driver's C interface by its documentation ("CUDA Driver API",
// docs.nvidia.com); the library that LibTorch's CUDA build has loaded.
std::string name_of(int number) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NODELETE);
  if (driver == nullptr) {
    return "?";
  }
  int (*device)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int handle = 0;
  std::array<char, 256> text{};
  const bool is_known =
      find_function(driver, "cuDeviceGet", device) &&
      find_function(driver, "cuDeviceGetName", name) &&
      device(&handle, number) == 0 &&
      name(text.data(), static_cast<int>(text.size()), handle) == 0;
  return is_known ? text.data() : "?";
}

} // namespace

std::string gpu_names(std::span<const c10::Device> devices) {
  std::vector<std::string> names;
  for (const c10::Device& device : devices) {
    if (device.is_cuda()) {
      const std::string name = name_of(device.index());
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  return join(names, " + ");
}

} // namespace lockstep
