// SPDX-License-Identifier: BSD-3-Clause
//
// The one file that names LibTorch's ProcessGroupGloo.
#include "lockstep/dist/internal/gloo_backend.h"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace lockstep::dist::internal {

c10::intrusive_ptr<c10d::Backend> gloo_backend(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const BackendOptions& options) {
  auto gloo = c10d::ProcessGroupGloo::Options::create(options.timeout);
  gloo->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
  gloo->group_name = options.group_name;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, gloo);
}

} // namespace lockstep::dist::internal
