// SPDX-License-Identifier: BSD-3-Clause
//
// Loops in the threads of LibTorch: those that compute its own operations, as
// many as `at::set_num_threads` says. `at::parallel_for` is a template, which
// is serial in whatever is compiled without OpenMP, as Lockstep and most
// programs of its users are.
#pragma once

#include <cstdint>

#include <c10/util/FunctionRef.h>

namespace lockstep::kernels {

/// Calls work(begin, end) for ranges that together are 0 to `count`: at most
/// one per thread and per `grain` steps begun, and a single one if the calling
/// thread is one of several already. Returns when all are done. An exception of
/// `work` reaches the caller. Threads: any.
void in_threads(
    std::int64_t count,
    std::int64_t grain,
    c10::function_ref<void(std::int64_t begin, std::int64_t end)> work);

/// Memory for `count` numbers of four bytes that the calling thread keeps,
/// since fresh pages cost as much as a pass over them. The next call takes it
/// back.
void* thread_scratch(std::int64_t count);

} // namespace lockstep::kernels
