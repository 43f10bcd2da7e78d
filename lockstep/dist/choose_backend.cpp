// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/dist/internal/choose_backend.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <c10/util/env.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/dist/internal/gloo_backend.h"
#include "lockstep/dist/internal/recorded_backend.h"
#include "lockstep/dist/internal/shm_backend.h"

namespace lockstep::dist::internal {
namespace {

using BackendType = c10d::ProcessGroup::BackendType;

constexpr std::array<std::string_view, 3> kNames{"", "gloo", "shm"};
constexpr std::array<std::string_view, 2> kDevices{"cpu", "cuda"};

[[noreturn]] void
refuse(ErrorCode code, std::string message, std::string hint) {
  raise(
      {.code = code,
       .op = "dist.init",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_BACKEND"});
}

void check_name(const std::string& name) {
  if (name == "nccl") {
    refuse(
        ErrorCode::kUnavailable,
        "Distributed package doesn't have NCCL built in",
        "use the backend gloo");
  }
  if (std::ranges::find(kNames, name) == kNames.end()) {
    refuse(
        ErrorCode::kInvalidArgument,
        format("unknown backend '{}'", escape(name)),
        "shm or gloo");
  }
}

/// The backend in "cpu:gloo".
std::string after_device(const std::string& entry) {
  const auto colon = entry.find(':');
  if (colon == std::string::npos) {
    return entry;
  }
  const std::string device = entry.substr(0, colon);
  if (std::ranges::find(kDevices, device) == kDevices.end()) {
    refuse(
        ErrorCode::kInvalidArgument,
        format("backend for an unknown device '{}'", escape(device)),
        "cpu or cuda");
  }
  return entry.substr(colon + 1);
}

/// One backend serves all devices.
void install(
    ProcessGroup::Impl& group,
    const std::string& name,
    BackendType type,
    const c10::intrusive_ptr<c10d::Backend>& inner) {
  const auto backend =
      recorded(inner, group.recorder, {.name = name, .ranks = group.ranks});
  group.group->setDefaultBackend(type);
  for (const auto device :
       {c10::DeviceType::CPU,
        c10::DeviceType::CUDA,
        c10::DeviceType::PrivateUse1}) {
    group.group->setBackend(device, type, backend);
  }
  group.backend = backend->getBackendName();
}

void connect_gloo(ProcessGroup::Impl& group, const Connections& connections) {
  group.collective("init", [&] {
    install(
        group,
        connections.group_name,
        BackendType::GLOO,
        gloo_backend(
            connections.store,
            group.group->getRank(),
            group.group->getSize(),
            {.timeout = group.timeout, .group_name = connections.group_name}));
  });
  if (!group.has_python_ranks) {
    // Until here Gloo has read from the store, too.
    connections.exchange("connected", "");
  }
}

} // namespace

std::string parse_backend(const std::string& text) {
  const auto entries = split(text, ',');
  std::string first = after_device(entries.front());
  for (const std::string& entry : entries) {
    const std::string name = after_device(entry);
    check_name(name);
    if (name != first) {
      refuse(
          ErrorCode::kUnavailable,
          format("'{}' names two backends", escape(text)),
          "one serves all devices");
    }
  }
  return first;
}

void connect(
    ProcessGroup::Impl& group,
    const std::string& wanted,
    const Connections& connections) {
  if (wanted == "gloo" || (wanted.empty() && group.has_python_ranks)) {
    connect_gloo(group, connections);
    return;
  }
  if (group.has_python_ranks) {
    refuse(
        ErrorCode::kUnavailable,
        "Python's ranks do not know the backend shm",
        "use the backend gloo");
  }
  auto shm = shm_backend(
      connections.exchange,
      group.group->getRank(),
      group.group->getSize(),
      group.timeout);
  if (shm) {
    // The Reducer asks for memory that the ranks share if this says so.
    c10::utils::set_env("DDP_DISABLE_COMM_MEM", "0", /*overwrite=*/false);
    install(group, connections.group_name, BackendType::CUSTOM, *shm);
  } else if (wanted.empty()) {
    connect_gloo(group, connections);
  } else {
    raise(shm.error());
  }
}

} // namespace lockstep::dist::internal
