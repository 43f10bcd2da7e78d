// SPDX-License-Identifier: BSD-3-Clause
//
// The devices of a run whose user names none, or says only `--no-cuda`.
#pragma once

#include <string>

#include "lockstep/train/settings/config.h"

namespace lockstep::train {

struct DeviceChoice {
  /// For `parse_devices`.
  std::string spec = {};
  /// Empty, or that a CUDA device is not used: the notes' words if nobody named
  /// the devices.
  std::string warning = {};
};

/// Whether one of the devices of `spec` is a CUDA device.
bool names_cuda(const std::string& spec);

/// On a machine with so many CUDA devices.
/// Errors: throws kInvalidArgument (E_FLAGS) for `--no-cuda` with a CUDA device
/// in `--devices`.
DeviceChoice choose_devices(const TrainConfig& config, int cuda_devices);
/// On this one.
DeviceChoice choose_devices(const TrainConfig& config);

} // namespace lockstep::train
