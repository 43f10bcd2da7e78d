// SPDX-License-Identifier: BSD-3-Clause
//
// The one file that names LibTorch's ProcessGroupGloo.
#include "lockstep/distributed/group/gloo_backend.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "lockstep/base/strings.h"

namespace lockstep::dist::internal {
namespace {

class Gloo final : public c10d::ProcessGroupGloo {
 public:
  using c10d::ProcessGroupGloo::ProcessGroupGloo;

  /// LibTorch's does nothing: what runs would wait for its time to be over.
  void abort() override {
    for (const auto& context : contexts_) {
      context->closeConnections();
    }
  }
};

/// The network interfaces to use, as Python reads them: "eth0,eth1"; "" for
/// that of the host's name.
std::vector<std::string> interfaces() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read once, at the start
  const char* const names = std::getenv("GLOO_SOCKET_IFNAME");
  return split(names == nullptr ? "" : names, ',');
}

} // namespace

c10::intrusive_ptr<c10d::Backend> gloo_backend(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const BackendOptions& options) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  for (const std::string& name : interfaces()) {
    gloo->devices.push_back(
        name.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                     : c10d::ProcessGroupGloo::createDeviceForInterface(name));
  }
  gloo->group_name = options.group_name;
  gloo->global_ranks_in_group = options.global_ranks;
  return c10::make_intrusive<Gloo>(store, rank, size, gloo);
}

} // namespace lockstep::dist::internal
