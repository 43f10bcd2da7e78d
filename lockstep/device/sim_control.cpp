// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/sim_control.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>

#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/internal/plugin.h"
#include "lockstep/device/internal/sim_plugin.h"

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
  // Under the mutex: what the variable was, how many devices there are with
  // those that it hides, and whether a later change was warned of.
  std::optional<std::string> visible = {};
  std::int32_t existing = 0;
  bool is_warned = false;
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

// `strip` of Python, for ASCII.
std::string_view stripped(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\r\v\f\x1c\x1d\x1e\x1f";
  const std::size_t begin =
      std::min(text.find_first_not_of(kBlank), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

// The number that `item` begins with, as strtoul reads it, without leading
// zeros; nullopt for a negative one or none.
std::optional<std::string> leading_number(std::string_view item) {
  item = stripped(item);
  const bool is_negative = item.starts_with('-');
  item.remove_prefix(is_negative || item.starts_with('+') ? 1 : 0);
  const std::size_t size =
      std::min(item.find_first_not_of("0123456789"), item.size());
  if (size == 0) {
    return std::nullopt;
  }
  const std::string_view digits = item.substr(0, size);
  const std::size_t zeros = digits.find_first_not_of('0');
  if (zeros == std::string_view::npos) {
    return "0";
  }
  return is_negative ? std::nullopt
                     : std::optional<std::string>(digits.substr(zeros));
}

// The list as PyTorch reads CUDA_VISIBLE_DEVICES: an item that is no number
// ends it, a repeated one empties it.
std::vector<std::string> visible_numbers(std::string_view visible) {
  std::vector<std::string> numbers;
  for (const std::string& item : split(visible, ',')) {
    const auto number = leading_number(item);
    if (!number) {
      break;
    }
    if (std::ranges::find(numbers, *number) != numbers.end()) {
      return {};
    }
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<std::int32_t> existing_by_environment() {
  const auto text = variable(kCountVariable);
  if (!text || text->empty()) {
    return std::nullopt;
  }
  const auto count = parse_number<std::int32_t>(*text);
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
    for (const std::string& number : visible_numbers(*visible)) {
      existing = std::max(
          existing,
          parse_number<std::int32_t>(number).value_or(kMaxSimDevices - 1) + 1);
    }
  }
  return std::min(existing, kMaxSimDevices);
}

std::string quoted(const std::optional<std::string>& value) {
  return value ? format("\"{}\"", escape(*value)) : "not set";
}

// What the variable hid, in words; empty if it was not set.
std::string visible_text(
    const std::optional<std::string>& visible,
    std::size_t left,
    std::int32_t existing) {
  return visible ? format(
                       "{} was {} at the start and left {} of {} devices",
                       kVisibleVariable,
                       quoted(visible),
                       left,
                       existing)
                 : "";
}

void check_enough(
    std::int32_t asked,
    std::size_t visible,
    const Started& self) {
  if (std::cmp_less(visible, std::max(asked, 1))) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = kSimOp,
         .message = format(
             "expected {} simulated device{}, this process has {}",
             std::max(asked, 1),
             asked > 1 ? "s" : "",
             visible),
         .hint = self.visible
                     ? visible_text(self.visible, visible, self.existing)
                     : format(
                           "look at {} and {}",
                           kCountVariable,
                           kVisibleVariable)});
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
  const c10::InferenceMode no_inference(false);
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
  self.visible = variable(kVisibleVariable);
  self.existing = existing_devices(asked);
  const std::vector<std::int32_t> physical =
      visible_sim_devices(self.visible, self.existing);
  check_enough(asked, physical.size(), self);
  const SimPlugin& plugin = plugin_table();
  const char* error =
      plugin.start(physical.data(), static_cast<std::int32_t>(physical.size()));
  if (error != nullptr) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = kSimOp,
         .message = format("the simulated devices do not start: {}", error),
         .hint = "\"cpu*2\" makes two replicas on the CPU; "
                 "CUDA_VISIBLE_DEVICES= hides CUDA devices"});
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
  for (const std::string& text : visible_numbers(*visible)) {
    const auto number = parse_number<std::int32_t>(text);
    if (!number || *number >= existing) {
      break;
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
    check_enough(
        options.devices,
        static_cast<std::size_t>(self.count.load()),
        self);
  }
}

std::string hidden_sim_devices() {
  Started& self = started();
  const std::lock_guard lock(self.mutex);
  return visible_text(
      self.visible,
      static_cast<std::size_t>(self.count.load()),
      self.existing);
}

void warn_of_late_sim_variable() {
  Started& self = started();
  const std::lock_guard lock(self.mutex);
  const std::optional<std::string> now(variable(kVisibleVariable));
  if (self.plugin.load() == nullptr || now == self.visible || self.is_warned) {
    return;
  }
  self.is_warned = true;
  TORCH_WARN(
      kVisibleVariable,
      " is ",
      quoted(now),
      " now and was ",
      quoted(self.visible),
      " when the simulated devices started; it is read only then");
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
