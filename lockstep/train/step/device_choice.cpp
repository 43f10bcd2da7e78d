// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/device_choice.h"

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"

namespace lockstep::train {

bool names_cuda(const std::string& spec) {
  return spec.find("cuda") != std::string::npos;
}

DeviceChoice choose_devices(const TrainConfig& config, int cuda_devices) {
  const bool is_named = !config.devices.empty();
  const bool has_cuda = cuda_devices > 0;
  DeviceChoice choice{
      .spec = is_named                  ? config.devices
              : has_cuda && config.cuda ? "cuda"
                                        : "cpu"};
  const bool uses_cuda = names_cuda(choice.spec);
  if (uses_cuda && !config.cuda) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.flags",
         .message = format(
             "--no-cuda contradicts --devices {}",
             escape(config.devices)),
         .hint = "leave one of them out",
         .detail = "E_FLAGS"});
  }
  if (has_cuda && !uses_cuda) {
    choice.warning = is_named
                         ? format(
                               "--devices {}: {} here and not used",
                               escape(config.devices),
                               counted(
                                   static_cast<std::uint64_t>(cuda_devices),
                                   "CUDA device is",
                                   "CUDA devices are"))
                         : unused_accelerator_text("cuda");
  }
  return choice;
}

DeviceChoice choose_devices(const TrainConfig& config) {
  return choose_devices(config, static_cast<int>(device_count("cuda")));
}

} // namespace lockstep::train
