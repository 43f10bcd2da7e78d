// SPDX-License-Identifier: BSD-3-Clause
//
// What LibTorch's device-neutral code (`manual_seed`, `pin_memory`,
// `at::accelerator`) asks of a backend.
#pragma once

namespace at {
struct PrivateUse1HooksInterface;
} // namespace at

namespace lockstep::sim {

/// Lives for ever.
at::PrivateUse1HooksInterface& hooks();

} // namespace lockstep::sim
