// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "lockstep/base/strings.h"
#include "lockstep/device/device_list.h"

namespace lockstep {

std::string accelerator_type() {
  for (const char* type : {"cuda", "sim"}) {
    if (device_count(type) > 0) {
      return type;
    }
  }
  return {};
}

DefaultDevice default_device(const DefaultDeviceOptions& options) {
  const std::string type = accelerator_type();
  if (type.empty()) {
    return {};
  }
  if (!options.use_accelerator) {
    return {.warning = unused_accelerator_text(type)};
  }
  return {.device = parse_devices(type + ":0").front()};
}

std::string unused_accelerator_text(std::string_view type) {
  std::string name(type);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return format(
      "WARNING: It looks like you have a {} device, but aren't using {}.\n"
      "Run with --{} for optimal training speed.",
      name,
      name,
      type);
}

} // namespace lockstep
