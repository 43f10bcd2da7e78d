// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives on plain bytes, piece by piece through a communicator: a piece is
// written while the one before it is read, so what is shared stays in the
// caches.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/distributed/shm/communicator.h"
#include "lockstep/distributed/shm/heap.h"

namespace lockstep::dist::shm {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

/// Joins `terms`, of `result`'s size, in their order. `result` may
/// be the first.
using Join =
    std::function<void(std::span<const std::byte* const> terms, Bytes result)>;

/// A rank's place in a communicator.
struct Place {
  Communicator& communicator;
  int rank = 0;
  int size = 1;
};

/// The bytes of `source` come into `data` of all ranks.
void broadcast(const Place& place, Bytes data, int source);

/// `own` of each rank comes into all ranks' `outputs[rank]`.
void all_gather(
    const Place& place,
    ConstBytes own,
    const std::vector<Bytes>& outputs);

/// `data` becomes what `join` makes of all ranks' data, the same bits on each.
void all_reduce(const Place& place, Bytes data, const Join& join);

/// `all_reduce` for data that lies in the ranks' heaps: it is joined there, and
/// nothing is copied. Returns false, and has done nothing, if the data of a
/// rank lies elsewhere.
bool all_reduce_in_place(
    const Place& place,
    const Heaps& heaps,
    Bytes data,
    const Join& join);

/// `output` becomes what `join` makes of all ranks' `inputs[this rank]`.
void reduce_scatter(
    const Place& place,
    const std::vector<ConstBytes>& inputs,
    Bytes output,
    const Join& join);

} // namespace lockstep::dist::shm
