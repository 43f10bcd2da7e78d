// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>

#include <ifaddrs.h>
#include <net/if.h>

#include "cli/doctor.h"
#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/rank_info.h"
#include "lockstep/base/strings.h"
#include "lockstep/launch/internal/master.h"

namespace lockstep::cli {
namespace {

// Variables that change what training does, in the order in which they are
// printed.
constexpr std::array kVariables{
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_STEP_ID",
    "OMPI_COMM_WORLD_RANK",
    "CUDA_VISIBLE_DEVICES",
    "LOCKSTEP_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "GLOO_SOCKET_IFNAME",
    "NCCL_SOCKET_IFNAME",
    "NCCL_DEBUG",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
};

// "" for a family that is neither.
std::string address_text(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): as ip(7) has it
  if (address.sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  } else if (address.sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  }
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  if (bytes == nullptr ||
      ::inet_ntop(address.sa_family, bytes, text.data(), text.size()) ==
          nullptr) {
    return {};
  }
  return text.data();
}

// Addresses of the interfaces that are up, by their names.
std::map<std::string, std::vector<std::string>> addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(
      list,
      &::freeifaddrs);
  std::map<std::string, std::vector<std::string>> found;
  for (const ifaddrs* row = list; row != nullptr; row = row->ifa_next) {
    if (row->ifa_addr == nullptr || (row->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    if (std::string text = address_text(*row->ifa_addr); !text.empty()) {
      found[row->ifa_name].push_back(std::move(text));
    }
  }
  return found;
}

Findings network_interfaces() {
  const auto found = addresses();
  Findings findings;
  for (const auto& [name, list] : found) {
    findings.push_back(
        {.group = "network", .name = name, .value = join(list, ", ")});
  }
  const bool is_alone = std::ranges::all_of(found, [](const auto& row) {
    return std::ranges::all_of(row.second, launch::is_loopback);
  });
  if (is_alone) {
    findings.push_back(
        {.group = "network",
         .name = "other machines",
         .value = "out of reach: no interface but loopback",
         .health = Health::kNote,
         .remedy = "ranks can be on this machine only"});
  }
  for (const char* const chooser :
       {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
    for (const std::string& name : split(environment_text(chooser), ',')) {
      // NCCL also takes "^docker" and "=eth0", and starts of names.
      const bool is_plain = !name.empty() && name[0] != '^' && name[0] != '=';
      if (is_plain && std::ranges::none_of(found, [&name](const auto& row) {
            return row.first.starts_with(name);
          })) {
        findings.push_back(
            {.group = "network",
             .name = chooser,
             .value = format("'{}' is no interface that is up", escape(name)),
             .health = Health::kProblem,
             .remedy = "name one of those above, or unset it"});
      }
    }
  }
  return findings;
}

// Where rank 0 would listen.
Finding master_port() {
  const std::string text = environment_text("MASTER_PORT");
  constexpr int kLast = 65535;
  Finding finding{.group = "launch", .name = "port"};
  const auto port = text.empty() ? std::optional<int>(launch::kDefaultPort)
                                 : parse_number<int>(text, 1, kLast);
  if (!port) {
    finding.value = format("MASTER_PORT '{}' is no port", escape(text));
    finding.health = Health::kProblem;
    finding.remedy = "a number from 1 to 65535";
  } else if (launch::can_listen("0.0.0.0", *port)) {
    finding.value = format("{} is free", *port);
  } else {
    finding.value = format("{} is taken", *port);
    finding.health = Health::kNote;
    finding.remedy =
        "by ranks that run, or by another program; a new job needs another "
        "MASTER_PORT. 'lockstep run' finds a free one by itself";
  }
  return finding;
}

Finding launched_ranks() {
  Finding finding{.group = "launch", .name = "ranks"};
  const Result<RankInfo> info = rank_info_from_environment();
  if (!info) {
    finding.value = info.error().message;
    finding.health = Health::kProblem;
    finding.remedy = info.error().hint.empty()
                         ? "start with 'lockstep run', torchrun, srun or "
                           "mpirun, or unset what is left of an earlier job"
                         : info.error().hint;
    return finding;
  }
  finding.value = info->size == 1
                      ? "one process: no launcher"
                      : format("rank {} of {}", info->rank, info->size);
  return finding;
}

Findings set_variables() {
  Findings findings;
  for (const char* const name : kVariables) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread, nobody sets variables
    const char* const value = std::getenv(name);
    if (value == nullptr) {
      continue;
    }
    Finding finding{
        .group = "launch",
        .name = name,
        .value = escape(value, 60)};
    if (std::string_view(name) == "CUDA_VISIBLE_DEVICES" && *value == '\0') {
      finding.value = "empty";
      finding.health = Health::kNote;
      finding.remedy = "no GPU is seen: unset it to use them";
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

} // namespace

Findings examine_network(const DoctorPlaces& /*places*/) {
  Findings findings = network_interfaces();
  findings.push_back(launched_ranks());
  findings.push_back(master_port());
  for (Finding& finding : set_variables()) {
    findings.push_back(std::move(finding));
  }
  return findings;
}

} // namespace lockstep::cli
