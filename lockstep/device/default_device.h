// SPDX-License-Identifier: BSD-3-Clause
//
// The device of a program whose user says nothing, or only yes or no to the
// accelerator, as the flag `--cuda` of many Python programs does.
//   const DefaultDevice start = default_device({.use_accelerator = cuda});
//   if (!start.warning.empty()) { std::cerr << start.warning << "\n"; }
//   auto x = torch::randn({2, 3}, start.device);
// LibTorch has a default dtype (`c10::set_default_dtype`), but no default
// device: tensors are made on the device that is named, else on the CPU.
#pragma once

#include <string>
#include <string_view>

#include <c10/core/Device.h>

namespace lockstep {

/// What the user said.
struct DefaultDeviceOptions {
  /// Use the accelerator if there is one.
  bool use_accelerator = true;
};

/// Where to put tensors, and what to tell the user.
struct DefaultDevice {
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  /// Empty, or `unused_accelerator_text`.
  std::string warning = {};
};

/// The type of this process's accelerator, "cuda" or "sim" (if started); empty
/// if there is none. LibTorch has at most one in a process.
std::string accelerator_type();

/// The first device of the accelerator; the CPU without one, and if it is not
/// to be used, which gets a warning.
DefaultDevice default_device(const DefaultDeviceOptions& options = {});

/// The usual warning, for "cuda" word for word: `WARNING: It looks like you
/// have a CUDA device, but aren't using CUDA.\nRun with --cuda for optimal
/// training speed.`
std::string unused_accelerator_text(std::string_view type);

} // namespace lockstep
