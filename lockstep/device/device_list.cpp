// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/device/device_list.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>

#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/sim_control.h"

namespace lockstep {
namespace {

using c10::DeviceType;

// More replicas than this on one host is a slip of the keyboard.
constexpr std::int64_t kMaxReplicas = 256;

struct TypeInfo {
  std::string_view name = {};
  DeviceType type = DeviceType::CPU;
  std::string_view absent = {};
  std::string_view hint = {};
};

constexpr std::array kTypes{
    TypeInfo{.name = "cpu", .type = DeviceType::CPU},
    TypeInfo{
        .name = "cuda",
        .type = DeviceType::CUDA,
        .absent = "no CUDA device is available to this process",
        .hint = "write \"cpu*2\" for two replicas on the CPU; for CUDA install "
                "a torch wheel with CUDA and a driver, and look at "
                "CUDA_VISIBLE_DEVICES"},
    TypeInfo{
        .name = "sim",
        .type = DeviceType::PrivateUse1,
        .absent = "the simulated devices are not started",
        .hint = "call start_sim first"},
};

[[noreturn]] void
bad_spec(std::string_view spec, std::string_view what, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "device.parse",
       .message = format("device list \"{}\": {}", escape(spec), what),
       .hint = std::move(hint)});
}

const TypeInfo& find_type(std::string_view name, std::string_view spec) {
  const auto* found = std::ranges::find(kTypes, name, &TypeInfo::name);
  if (found != kTypes.end()) {
    return *found;
  }
  std::vector<std::string> names;
  names.reserve(kTypes.size());
  for (const TypeInfo& type : kTypes) {
    names.emplace_back(type.name);
  }
  const std::string near = nearest(name, names);
  bad_spec(
      spec,
      format("unknown device type \"{}\"", escape(name)),
      near.empty() || name == "gpu"
          ? "write cpu, cpu*2, cuda, cuda:1,3 or sim*8"
          : format("did you mean \"{}\"?", near));
}

std::int64_t count_of(const TypeInfo& type) {
  if (type.type == DeviceType::CPU) {
    return 1;
  }
  if (type.type == DeviceType::PrivateUse1 &&
      c10::get_privateuse1_backend(/*lower_case=*/true) != type.name) {
    return 0;
  }
  if (!c10::impl::hasDeviceGuardImpl(type.type)) {
    return 0;
  }
  return c10::impl::getDeviceGuardImpl(type.type)->deviceCount();
}

// Of a device that is named without a number.
int current_index(const TypeInfo& type) {
  return count_of(type) == 0
             ? 0
             : c10::impl::getDeviceGuardImpl(type.type)->getDevice().index();
}

// What follows the type: nothing, "*N" or ":I,J".
struct Selection {
  std::optional<std::int64_t> count = {};
  std::vector<std::int64_t> indices = {};
};

Selection parse_selection(std::string_view tail, std::string_view spec) {
  Selection selection;
  if (tail.empty()) {
    return selection;
  }
  const std::string_view body = tail.substr(1);
  if (tail.front() == '*') {
    selection.count = parse_number<std::int64_t>(body, 1, kMaxReplicas);
    if (!selection.count) {
      bad_spec(
          spec,
          format(
              "expected a count from 1 to {}, got \"{}\"",
              kMaxReplicas,
              escape(body)),
          "write for example \"cpu*2\"");
    }
    return selection;
  }
  for (const std::string& part : split(body, ',')) {
    const auto index = parse_number<std::int64_t>(part, 0);
    if (!index) {
      bad_spec(
          spec,
          format("expected a device number, got \"{}\"", escape(part)),
          "write for example \"cuda:1,3\"");
    }
    if (std::ranges::count(selection.indices, *index) > 0) {
      bad_spec(spec, format("device {} is named twice", *index), "");
    }
    selection.indices.push_back(*index);
  }
  return selection;
}

std::vector<c10::Device> cpu_devices(
    const Selection& selection,
    std::string_view spec) {
  if (!selection.indices.empty()) {
    bad_spec(
        spec,
        "the CPU is one device and has no numbers",
        "write \"cpu*2\" for two replicas");
  }
  const auto count = static_cast<std::size_t>(selection.count.value_or(1));
  return {count, c10::Device(DeviceType::CPU)};
}

// Naming simulated devices starts them, as many as are named.
void start_named_sim(const Selection& selection) {
  std::int64_t devices = selection.count.value_or(0);
  for (const std::int64_t index : selection.indices) {
    devices =
        std::max(devices, std::min<std::int64_t>(index, kMaxReplicas) + 1);
  }
  start_sim({.devices = static_cast<std::int32_t>(devices)});
}

// "this process has 2 cuda devices"
std::string present(const TypeInfo& type, std::int64_t count) {
  return format(
      "this process has {} {} device{}",
      count,
      type.name,
      count == 1 ? "" : "s");
}

std::string numbers_hint(std::int64_t count, bool is_sim) {
  const std::string hidden = is_sim ? hidden_sim_devices() : std::string();
  return format(
      "numbers go from 0 to {}{}{}",
      count - 1,
      hidden.empty() ? "" : "; ",
      hidden);
}

} // namespace

std::vector<c10::Device> parse_devices(std::string_view spec) {
  const std::size_t stop = std::min(spec.find_first_of("*:"), spec.size());
  const TypeInfo& type = find_type(spec.substr(0, stop), spec);
  const Selection selection = parse_selection(spec.substr(stop), spec);
  if (type.type == DeviceType::CPU) {
    return cpu_devices(selection, spec);
  }
  const bool is_sim = type.type == DeviceType::PrivateUse1;
  if (is_sim && sim_device_count() == 0) {
    start_named_sim(selection);
  }
  if (is_sim) {
    warn_of_late_sim_variable();
  }
  const std::int64_t count = count_of(type);
  if (count == 0) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = "device.parse",
         .message = format("device list \"{}\": {}", escape(spec), type.absent),
         .hint = std::string(type.hint)});
  }
  std::vector<std::int64_t> indices = selection.indices;
  if (indices.empty()) {
    indices.resize(static_cast<std::size_t>(selection.count.value_or(count)));
    std::iota(indices.begin(), indices.end(), std::int64_t{0});
  }
  std::vector<c10::Device> devices;
  for (const std::int64_t index : indices) {
    if (index >= count) {
      raise(
          {.code = ErrorCode::kUnavailable,
           .op = "device.parse",
           .message = format(
               "device list \"{}\": {}:{} is not present; {}",
               escape(spec),
               type.name,
               index,
               present(type, count)),
           .hint = numbers_hint(count, is_sim)});
    }
    devices.emplace_back(type.type, static_cast<c10::DeviceIndex>(index));
  }
  return devices;
}

std::vector<c10::Device> DeviceSpec::resolve() const {
  if (devices_.empty()) {
    return parse_devices(words_);
  }
  const DeviceType type = devices_.front().type();
  const auto* const info = std::ranges::find(kTypes, type, &TypeInfo::type);
  const bool is_mixed = std::ranges::any_of(devices_, [type](c10::Device d) {
    return d.type() != type;
  });
  if (is_mixed || info == kTypes.end()) {
    bad_spec(
        to_string(devices_),
        is_mixed ? "expected devices of one type" : "expected cpu, cuda or sim",
        R"(write for example {torch::Device("cuda:0"), torch::Device("cuda:1")})");
  }
  if (type == DeviceType::CPU) {
    return {devices_.size(), c10::Device(type)}; // numbers mean nothing there
  }
  std::vector<std::string> numbers;
  numbers.reserve(devices_.size());
  for (const c10::Device& device : devices_) {
    numbers.push_back(std::to_string(
        device.has_index() ? device.index() : current_index(*info)));
  }
  return parse_devices(format("{}:{}", info->name, join(numbers, ",")));
}

std::int64_t device_count(std::string_view type) {
  return count_of(find_type(type, type));
}

std::string to_string(std::span<const c10::Device> devices) {
  std::vector<std::string> groups;
  for (std::size_t i = 0; i < devices.size();) {
    const c10::Device first = devices[i];
    const std::size_t begin = i;
    std::string group = c10::DeviceTypeName(first.type(), /*lower_case=*/true);
    std::string numbers;
    for (; i < devices.size() && devices[i].type() == first.type(); ++i) {
      if (devices[i].has_index()) {
        numbers += (numbers.empty() ? ":" : ",");
        numbers += std::to_string(devices[i].index());
      }
    }
    if (numbers.empty() && i - begin > 1) {
      numbers = format("*{}", i - begin);
    }
    groups.push_back(group + numbers);
  }
  return join(groups, " + ");
}

} // namespace lockstep
