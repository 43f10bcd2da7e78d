// SPDX-License-Identifier: BSD-3-Clause
//
// `map_location` of `load`: where the tensors of a file go.
//   {.map_location = "cpu"}
//   {.map_location = torch::Device("cuda:0")}
//   {.map_location = std::map<std::string, std::string>{{"cuda:1", "cuda:0"}}}
//   {.map_location = [](const std::string& location) { return ...; }}
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include <c10/core/Device.h>

#include "lockstep/ckpt/value.h"

namespace lockstep {

/// A rule from the device tag in a file ("cpu", "cuda:1") to a device.
class MapLocation {
 public:
  /// Gets the tag; nothing means "as stored".
  using Function =
      std::function<std::optional<c10::Device>(const std::string& location)>;
  using Map = std::map<std::string, std::string>;

  /// As stored.
  MapLocation() = default;
  // Implicit on purpose: `{.map_location = "cpu"}`.
  // NOLINTBEGIN(google-explicit-constructor)
  MapLocation(const char* device) : rule_(std::string(device)) {}
  MapLocation(std::string device) : rule_(std::move(device)) {}
  MapLocation(c10::Device device) : rule_(device.str()) {}
  /// Tags that are not in the map stay as stored.
  MapLocation(Map map) : rule_(std::move(map)) {}
  template <std::invocable<const std::string&> F>
  MapLocation(F function) : rule_(Function(std::move(function))) {}
  // NOLINTEND(google-explicit-constructor)

  /// The location that `location` becomes: "cuda:0".
  /// Errors: as `location_device`.
  [[nodiscard]] std::string apply(const std::string& location) const;

 private:
  std::variant<std::monostate, std::string, Map, Function> rule_;
};

/// The device that a location names, if this machine has it.
/// Errors: throws kUnavailable with PyTorch's text for CUDA devices that are
/// not here; kUnsupported for an unknown tag.
c10::Device location_device(const std::string& location);

/// The check of `location_device` for CUDA against given facts.
/// `index` is -1 for plain "cuda".
void check_cuda_location(int index, bool is_available, int device_count);

/// Sets the location of every storage in `value` by `rule`.
/// Errors: as `MapLocation::apply`.
void map_locations(const ckpt::Value& value, const MapLocation& rule);

} // namespace lockstep
