// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/sim_control.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <string>

#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/plugin.h"

namespace lockstep {
namespace {

constexpr const char* kSimOp = "device.sim";
constexpr const char* kCountVariable = "LOCKSTEP_SIM_DEVICES";
constexpr const char* kVisibleVariable = "LOCKSTEP_VISIBLE_DEVICES";

// LibTorch keeps one backend of this kind per process, and so do we.
struct Started {
  std::mutex mutex = {};
  std::atomic<const SimPlugin*> plugin{nullptr};
  std::atomic<std::int32_t> count{0};
};

Started& started() {
  static Started instance;
  return instance;
}

std::optional<std::string_view> variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here sets the environment
  const char* text = std::getenv(name);
  return text == nullptr ? std::nullopt : std::optional<std::string_view>(text);
}

[[noreturn]] void
bad_variable(const char* name, std::string_view value, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = kSimOp,
       .message = format("{}={} is not understood", name, escape(value)),
       .hint = std::move(hint)});
}

std::optional<std::int32_t> to_number(std::string_view text) {
  std::int32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::int32_t> existing_by_environment() {
  const auto text = variable(kCountVariable);
  if (!text || text->empty()) {
    return std::nullopt;
  }
  const auto count = to_number(*text);
  if (!count || *count < 1 || *count > kMaxSimDevices) {
    bad_variable(
        kCountVariable,
        *text,
        format("write a number from 1 to {}", kMaxSimDevices));
  }
  return count;
}

// Without a number from the environment there are enough for what is asked.
std::int32_t existing_devices(std::int32_t asked) {
  if (const auto count = existing_by_environment()) {
    return *count;
  }
  std::int32_t existing = std::max(asked, 1);
  const auto visible = variable(kVisibleVariable);
  if (visible) {
    for (const std::string& part : split(*visible, ',')) {
      existing = std::max(existing, to_number(part).value_or(0) + 1);
    }
  }
  return std::min(existing, kMaxSimDevices);
}

void check_enough(std::int32_t asked, std::size_t visible) {
  if (std::cmp_less(visible, std::max(asked, 1))) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = kSimOp,
         .message = format(
             "expected {} simulated device{}, this process has {}",
             std::max(asked, 1),
             asked > 1 ? "s" : "",
             visible),
         .hint =
             format("look at {} and {}", kCountVariable, kVisibleVariable)});
  }
}

const SimPlugin& plugin_table() {
  void* const library = load_plugin("lockstep_sim");
  const auto entry =
      reinterpret_cast<SimPluginEntry>(plugin_symbol(library, kSimPluginEntry));
  const SimPlugin* plugin = entry();
  if (plugin->version != kSimPluginVersion) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = kSimOp,
         .message = format(
             "the plugin speaks version {}, expected {}",
             plugin->version,
             kSimPluginVersion),
         .hint = "use the plugin of the same Lockstep version"});
  }
  return *plugin;
}

// Device threads are made in the process's first backward pass, for the devices
// known then. A pass on the last device shows whether it came too early.
void check_backward(std::size_t count) {
  const c10::Device last(
      c10::DeviceType::PrivateUse1,
      static_cast<c10::DeviceIndex>(count - 1));
  const c10::AutoGradMode grad(true);
  try {
    at::ones({}, at::TensorOptions(last)).requires_grad_().mul(2).backward();
  } catch (const c10::Error&) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = kSimOp,
         .message = "the simulated devices were started after the process's "
                    "first backward pass, which is too late for LibTorch",
         .hint = "call start_sim first in main()"});
  }
}

void start(Started& self, std::int32_t asked) {
  const std::vector<std::int32_t> physical =
      visible_sim_devices(variable(kVisibleVariable), existing_devices(asked));
  check_enough(asked, physical.size());
  const SimPlugin& plugin = plugin_table();
  const char* error =
      plugin.start(physical.data(), static_cast<std::int32_t>(physical.size()));
  if (error != nullptr) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = kSimOp,
         .message = format("the simulated devices do not start: {}", error),
         .hint = "write \"cpu*2\" for two replicas on the CPU"});
  }
  check_backward(physical.size());
  for (std::size_t i = 0; i < physical.size(); ++i) {
    plugin.reset_counters(static_cast<std::int32_t>(i));
  }
  self.plugin.store(&plugin);
  self.count.store(static_cast<std::int32_t>(physical.size()));
}

const SimPlugin& plugin_for(std::int32_t device) {
  const std::int32_t count = sim_device_count();
  if (device < 0 || device >= count) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = kSimOp,
         .message = format(
             "sim:{} is not present; this process has {} simulated device{}",
             device,
             count,
             count == 1 ? "" : "s"),
         .hint = count == 0 ? "call start_sim first" : ""});
  }
  return *started().plugin.load();
}

} // namespace

std::vector<std::int32_t> visible_sim_devices(
    std::optional<std::string_view> visible,
    std::int32_t existing) {
  std::vector<std::int32_t> physical;
  if (!visible) {
    for (std::int32_t i = 0; i < existing; ++i) {
      physical.push_back(i);
    }
    return physical;
  }
  if (visible->empty()) {
    return physical;
  }
  for (const std::string& part : split(*visible, ',')) {
    const auto number = to_number(part);
    if (!number) {
      bad_variable(
          kVisibleVariable,
          *visible,
          "write numbers with commas between them: 1,3");
    }
    if (*number < 0 || *number >= existing) {
      break;
    }
    if (std::ranges::find(physical, *number) != physical.end()) {
      bad_variable(kVisibleVariable, *visible, "name each device once");
    }
    physical.push_back(*number);
  }
  return physical;
}

void start_sim(const SimOptions& options) {
  if (options.devices < 0 || options.devices > kMaxSimDevices) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = kSimOp,
         .message = format(
             "devices: expected at most {}, got {}",
             kMaxSimDevices,
             options.devices)});
  }
  Started& self = started();
  const std::lock_guard lock(self.mutex);
  if (self.plugin.load() == nullptr) {
    start(self, options.devices);
  } else {
    check_enough(options.devices, static_cast<std::size_t>(self.count.load()));
  }
}

std::int32_t sim_device_count() noexcept {
  return started().count.load();
}

SimCounters sim_counters(std::int32_t device) {
  SimCounters counters;
  plugin_for(device).counters(device, &counters);
  return counters;
}

void reset_sim_counters(std::int32_t device) {
  plugin_for(device).reset_counters(device);
}

void set_sim_memory_limit(std::int32_t device, std::uint64_t bytes) {
  plugin_for(device).set_memory_limit(device, bytes);
}

void set_sim_link(const SimLink& link) {
  plugin_for(0).set_link(&link);
}

void fail_sim_device(std::int32_t device, std::uint64_t operation) {
  plugin_for(device).fail_at(device, operation);
}

void check_sim_streams(bool is_on) {
  plugin_for(0).check_streams(is_on);
}

} // namespace lockstep
