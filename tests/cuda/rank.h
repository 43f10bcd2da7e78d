// SPDX-License-Identifier: BSD-3-Clause
//
// One of two processes that use the same GPU: in one process LibTorch's single
// thread for a device's backward passes would wait for itself.
#pragma once

#include <string>

namespace lockstep::test {

/// Meets the other rank in `folder`, over each backend that works by way of the
/// CPU, and prints what goes wrong. Returns the exit status.
int run_rank(int rank, const std::string& folder);

} // namespace lockstep::test
