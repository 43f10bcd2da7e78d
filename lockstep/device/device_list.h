// SPDX-License-Identifier: BSD-3-Clause
//
// One grammar for lists of devices, wherever a user names them:
//   "cpu"  "cpu*2" (two replicas)  "cuda"  "cuda:1,3"  "cuda*4"  "sim*8"
//   for (c10::Device device : parse_devices("cuda:1,3")) { ... }
//
// The device of a program whose user says nothing, or only yes or no to the
// accelerator, as the flag `--cuda` of many Python programs does.
//   const DefaultDevice start = default_device({.use_accelerator = cuda});
//   if (!start.warning.empty()) { std::cerr << start.warning << "\n"; }
//   auto x = torch::randn({2, 3}, start.device);
// LibTorch has a default dtype (`c10::set_default_dtype`), but no default
// device: tensors are made on the device that is named, else on the CPU.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

#pragma GCC visibility push(default)
namespace lockstep {

/// The devices that `spec` names, in its order. A bare "cuda" or "sim" means
/// all that are visible; `TYPE*N` the first N of them, and for the CPU N
/// replicas on this host. Naming simulated devices for the first time starts
/// them (sim_control.h).
/// Errors: throws kInvalidArgument for a spec outside the grammar, kUnavailable
/// for a device that this process does not have; both say what to write.
std::vector<c10::Device> parse_devices(std::string_view spec);

/// Devices as a user names them: in words, or one by one.
///   DeviceSpec("cuda:1,3")   DeviceSpec({torch::Device("cuda:1")})
class DeviceSpec {
 public:
  DeviceSpec() = default;
  // Implicit on purpose: `DataParallel model(net, {.devices = "cpu*2"})`.
  // NOLINTBEGIN(google-explicit-constructor)
  DeviceSpec(const char* words) : words_(words) {}
  DeviceSpec(std::string words) : words_(std::move(words)) {}
  DeviceSpec(c10::Device device) : devices_{device} {}
  DeviceSpec(std::vector<c10::Device> devices) : devices_(std::move(devices)) {}
  DeviceSpec(std::initializer_list<c10::Device> devices) : devices_(devices) {}
  // NOLINTEND(google-explicit-constructor)

  /// Nothing was named.
  [[nodiscard]] bool is_empty() const noexcept {
    return words_.empty() && devices_.empty();
  }
  /// The devices; one without a number is the current one of its type. Names
  /// simulated devices as `parse_devices` does.
  /// Errors: as `parse_devices`; throws kInvalidArgument for several types.
  [[nodiscard]] std::vector<c10::Device> resolve() const;

 private:
  std::string words_ = {};
  std::vector<c10::Device> devices_ = {};
};

/// How many devices of `type` this process has; 1 for the CPU, 0 without the
/// backend. "sim" is there once it is started.
std::int64_t device_count(std::string_view type);

/// Shortest spec that `parse_devices` reads back: "cpu*2", "cuda:1,3". Mixed
/// types are joined with " + ".
std::string to_string(std::span<const c10::Device> devices);

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
#pragma GCC visibility pop
