// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/group/backend_choice.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/strings.h"

namespace lockstep::dist {
namespace {

constexpr std::array<std::string_view, 3> kHostNames{"", "gloo", "shm"};
constexpr std::array<std::string_view, 2> kDevices{"cpu", "cuda"};
constexpr const char* kNcclName = "nccl";

[[noreturn]] void
refuse(ErrorCode code, std::string message, std::string hint) {
  raise(
      {.code = code,
       .op = "dist.init",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_BACKEND"});
}

/// "cpu:gloo"; with a bare name the device is the first that it serves.
struct Entry {
  std::string device = {};
  std::string name = {};
};

Entry parse_entry(const std::string& text) {
  const auto colon = text.find(':');
  Entry entry{
      .device = text == kNcclName ? "cuda" : "cpu",
      .name = text.substr(colon == std::string::npos ? 0 : colon + 1)};
  if (colon != std::string::npos) {
    entry.device = text.substr(0, colon);
  }
  if (std::ranges::find(kDevices, entry.device) == kDevices.end()) {
    refuse(
        ErrorCode::kInvalidArgument,
        format("backend for an unknown device '{}'", escape(entry.device)),
        "cpu or cuda");
  }
  if (entry.name != kNcclName &&
      std::ranges::find(kHostNames, entry.name) == kHostNames.end()) {
    refuse(
        ErrorCode::kInvalidArgument,
        format("unknown backend '{}'", escape(entry.name)),
        "nccl, shm or gloo");
  }
  return entry;
}

/// What `text` says, wherever it is run.
BackendChoice parse(const std::string& text) {
  BackendChoice choice{.host = kNcclName};
  for (const std::string& part : split(text, ',')) {
    const Entry entry = parse_entry(part);
    if (entry.name == kNcclName) {
      if (entry.device != "cuda") {
        refuse(
            ErrorCode::kInvalidArgument,
            format("NCCL has no tensors of the device '{}'", entry.device),
            "cpu:gloo,cuda:nccl");
      }
      choice.has_nccl = true;
    } else if (!choice.has_host()) {
      choice.host = entry.name;
      choice.host_device = entry.device;
    } else if (choice.host != entry.name) {
      refuse(
          ErrorCode::kUnavailable,
          format("'{}' names two backends", escape(text)),
          "shm or gloo serves all devices, or all but those of nccl");
    }
  }
  return choice;
}

} // namespace

std::string BackendChoice::text() const {
  return has_nccl && has_host() ? format("cpu:{},cuda:nccl", host) : host;
}

BackendChoice parse_backend(
    const std::string& text,
    bool has_python_ranks,
    const std::optional<Error>& no_nccl) {
  BackendChoice choice = parse(text);
  if (choice.has_nccl && no_nccl) {
    raise(*no_nccl);
  }
  if (text.empty() && !no_nccl) {
    choice.has_nccl = true;
    if (has_python_ranks) {
      choice.host = kNcclName;
    }
  }
  return choice;
}

} // namespace lockstep::dist
