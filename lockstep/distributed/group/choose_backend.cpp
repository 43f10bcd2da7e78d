// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/distributed/group/choose_backend.h"

#include <array>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include <c10/util/env.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/cuda.h>

#include "lockstep/base/error.h"
#include "lockstep/base/rank_info.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/group/gloo_backend.h"
#include "lockstep/distributed/group/nccl_backend.h"
#include "lockstep/distributed/shm/shm_backend.h"
#include "lockstep/distributed/watch/recorded_backend.h"

namespace lockstep::dist::internal {
namespace {

using BackendType = c10d::ProcessGroup::BackendType;

/// What NCCL leaves to the backend of the CPU.
constexpr std::array kHostDevices{
    c10::DeviceType::CPU,
    c10::DeviceType::PrivateUse1};
constexpr std::array kCudaDevices{c10::DeviceType::CUDA};

c10::intrusive_ptr<c10d::Store> store_of(
    const std::string& device,
    const Connections& connections) {
  return c10::make_intrusive<c10d::PrefixStore>(
      device + "/",
      connections.store);
}

FlightGroup place_of(const ProcessGroup::Impl& group) {
  return {.name = group.path, .ranks = group.ranks};
}

/// The type of the last one is the group's default, as in Python.
void install(
    ProcessGroup::Impl& group,
    const FlightGroup& place,
    BackendType type,
    const c10::intrusive_ptr<c10d::Backend>& inner,
    std::span<const c10::DeviceType> devices) {
  const auto backend = recorded(inner, group.recorder, place);
  group.group->setDefaultBackend(type);
  for (const auto device : devices) {
    group.group->setBackend(device, type, backend);
  }
}

BackendOptions options_of(
    const ProcessGroup::Impl& group,
    const Connections& connections) {
  BackendOptions options{
      .timeout = group.timeout,
      .group_name = connections.group_name};
  if (connections.is_sub_group) {
    options.global_ranks.assign(group.ranks.begin(), group.ranks.end());
  }
  return options;
}

void install_host(
    ProcessGroup::Impl& group,
    const BackendChoice& wanted,
    BackendType type,
    const c10::intrusive_ptr<c10d::Backend>& inner) {
  install(group, place_of(group), type, inner, kHostDevices);
  group.backend = inner->getBackendName();
  if (!wanted.has_nccl) { // CUDA's tensors take the way through the CPU
    group.group->setBackend(
        c10::DeviceType::CUDA,
        type,
        group.group->getBackend(c10::DeviceType::CPU));
  }
}

/// Recorded as the collective before the first, so that the rank that keeps the
/// others from their connections is found in the same way.
c10::intrusive_ptr<c10d::Backend> connected_gloo(
    const ProcessGroup::Impl& group,
    const BackendChoice& wanted,
    const Connections& connections) {
  FlightRecorder& recorder = *group.recorder;
  const FlightGroup place = place_of(group);
  const auto flight = std::make_shared<Flight>();
  flight->entry = {.name = "connect", .group = place.name};
  flight->group = std::make_shared<FlightGroup>(place);
  flight->carrier = std::make_shared<Carrier>(nullptr);
  recorder.begin(flight);
  try {
    auto backend = gloo_backend(
        store_of(wanted.host_device, connections),
        group.group->getRank(),
        group.group->getSize(),
        options_of(group, connections));
    recorder.end(*flight, false);
    return backend;
  } catch (const Exception&) {
    recorder.end(*flight, true);
    throw;
  } catch (const std::exception& error) {
    const auto failure = recorder.failure(*flight, text_of(error));
    recorder.end(*flight, true);
    std::rethrow_exception(failure);
  }
}

void connect_gloo(
    ProcessGroup::Impl& group,
    const BackendChoice& wanted,
    const Connections& connections) {
  install_host(
      group,
      wanted,
      BackendType::GLOO,
      connected_gloo(group, wanted, connections));
  if (!group.has_python_ranks) {
    // Until here Gloo has read from the store, too.
    connections.exchange("connected", "");
  }
}

void connect_host(
    ProcessGroup::Impl& group,
    const BackendChoice& wanted,
    const Connections& connections) {
  if (wanted.host == "gloo" ||
      (wanted.host.empty() && group.has_python_ranks)) {
    connect_gloo(group, wanted, connections);
    return;
  }
  if (group.has_python_ranks) {
    raise(
        {.code = ErrorCode::kUnavailable,
         .op = "dist.init",
         .message = "Python's ranks do not know the backend shm",
         .hint = "use the backend gloo",
         .detail = "E_BACKEND"});
  }
  auto shm = shm_backend(
      connections.exchange,
      group.group->getRank(),
      group.group->getSize(),
      group.timeout);
  if (shm) {
    // The Reducer asks for memory that the ranks share if this says so.
    c10::utils::set_env("DDP_DISABLE_COMM_MEM", "0", /*overwrite=*/false);
    install_host(group, wanted, BackendType::CUSTOM, *shm);
  } else if (wanted.host.empty()) {
    connect_gloo(group, wanted, connections);
  } else {
    raise(shm.error());
  }
}

/// As Python's programs choose it with `device_id`: the launcher's number among
/// the ranks of this host, and of those that the rank can see.
c10::Device own_device(int rank) {
  const auto place = rank_info_from_environment();
  const int number = place && place->size > 1 ? place->local_rank : rank;
  return {
      c10::DeviceType::CUDA,
      static_cast<c10::DeviceIndex>(number % torch::cuda::device_count())};
}

void connect_nccl(ProcessGroup::Impl& group, const Connections& connections) {
  group.collective("init", [&] {
    install(
        group,
        // Its collectives are counted apart from those of the CPU.
        {.name = group.path + "/cuda", .ranks = group.ranks},
        BackendType::NCCL,
        nccl_backend(
            store_of("cuda", connections),
            group.group->getRank(),
            group.group->getSize(),
            options_of(group, connections)),
        kCudaDevices);
  });
  group.group->setBoundDeviceId(own_device(
      group.ranks[static_cast<std::size_t>(group.group->getRank())]));
  group.backend = group.backend.empty()
                      ? "nccl"
                      : format("cpu:{},cuda:nccl", group.backend);
}

} // namespace

BackendChoice choose_backend(const InitOptions& options) {
  return parse_backend(options.backend, options.has_python_ranks, nccl_error());
}

void connect(
    ProcessGroup::Impl& group,
    const BackendChoice& wanted,
    const Connections& connections) {
  if (wanted.has_host()) {
    connect_host(group, wanted, connections);
  }
  if (wanted.has_nccl) {
    connect_nccl(group, connections);
  }
}

} // namespace lockstep::dist::internal
