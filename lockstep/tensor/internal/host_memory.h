// SPDX-License-Identifier: BSD-3-Clause
//
// How this process deals with memory that LibTorch's CPU allocator frees.
#pragma once

namespace lockstep {

/// Keeps freed blocks for the next step instead of giving them back to the
/// kernel, and asks for huge pages. A training step allocates the same
/// activations again, and each small page that has to come back costs a fault
/// and 4 KiB of zeros: 10,000 per step of ResNet18. The process keeps its peak.
///
/// For programs, at the start of `main`, before there are threads; a library
/// must not decide this for others. Does nothing without glibc.
void keep_freed_host_memory();

} // namespace lockstep
