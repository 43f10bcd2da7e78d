// SPDX-License-Identifier: BSD-3-Clause
//
// A library with NCCL's C interface for simulated devices, whose memory is host
// memory: it sums float32 when a group ends, and counts what it was asked for.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::test {

struct FakeNccl {
  int communicators = 0; // that live
  int groups = 0;
  int reductions = 0;
  std::vector<std::uintptr_t> streams = {}; // of the last group, in order
  int fails_with = 0; // what the next ncclGroupEnd returns
};

/// The symbol `fake_nccl` of the library.
using FakeNcclEntry = FakeNccl* (*)();

} // namespace lockstep::test
