// SPDX-License-Identifier: BSD-3-Clause
//
// The heap of a program that reads its input, prints and ends: hints for the C
// library's allocator, which mean nothing to another one.
//   tune_heap();                  // first in main
//   expect_heap(8 * file_bytes);  // before many small allocations
#pragma once

#include <cstdint>

namespace lockstep {

/// From now on the heap grows in few steps and gives nothing back, only to
/// fetch it again. Threads: call before there are others.
void tune_heap();

/// Many allocations of together about `bytes` follow: their pages are mapped
/// with a few system calls, where each cost a fault when first touched. Does
/// nothing before `tune_heap`.
void expect_heap(std::uint64_t bytes);

} // namespace lockstep
