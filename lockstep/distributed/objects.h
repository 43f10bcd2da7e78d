// SPDX-License-Identifier: BSD-3-Clause
//
// Value trees between ranks: numbers, texts, lists, dicts, and tensors in them.
//   const auto all = dist::all_gather_object(
//       group, ckpt::Value::dict({{"host", name}, {"seen", 120}}));
// What holds no tensor travels as Python's pickle, so ranks of Python take part
// with `dist.all_gather_object`. Nothing in it is executed here.
#pragma once

#include <vector>

#include "lockstep/ckpt/value.h"
#include "lockstep/distributed/process_group.h"

namespace lockstep::dist {

/// The values of all ranks, by rank.
/// Errors: throws as the collectives; kUnsupported for a value that cannot be
/// written; what reading pickles returns.
[[nodiscard]] std::vector<ckpt::Value> all_gather_object(
    const ProcessGroup& group,
    const ckpt::Value& object);

/// The values of all ranks, by rank, on rank `dst`; nothing on the others.
[[nodiscard]] std::vector<ckpt::Value> gather_object(
    const ProcessGroup& group,
    const ckpt::Value& object,
    int dst = 0);

/// The value of rank `src`. In Python: `broadcast_object_list` with one object.
[[nodiscard]] ckpt::Value broadcast_object(
    const ProcessGroup& group,
    const ckpt::Value& object,
    int src = 0);

} // namespace lockstep::dist
