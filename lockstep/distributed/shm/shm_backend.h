// SPDX-License-Identifier: BSD-3-Clause
//
// A c10d backend for ranks of one host: they add up each other's numbers in
// memory that all of them see, always in the order of the ranks.
#pragma once

#include <chrono>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "lockstep/base/error.h"
#include "lockstep/distributed/shm/exchange_texts.h"

namespace lockstep::dist::internal {

/// Collectives are over when they return, in the calling thread. Tensors of any
/// device; those of others than the CPU are copied there and back. The work of
/// one that a rank keeps from ending has failed and names that rank.
/// Ownership: the memory has no name; it ends with the ranks.
/// Errors: kUnavailable, on all ranks alike, with the ranks that cannot share
/// memory and why; those of `exchange`.
Result<c10::intrusive_ptr<c10d::Backend>> shm_backend(
    const ExchangeTexts& exchange,
    int rank,
    int size,
    std::chrono::milliseconds timeout);

} // namespace lockstep::dist::internal
