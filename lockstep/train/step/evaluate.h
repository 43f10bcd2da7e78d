// SPDX-License-Identifier: BSD-3-Clause
//
// How good a model is on a data set: average loss, top-1 and top-5 accuracy.
//   Score score = evaluate(strategy, loader, 10000);
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/data/loader.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/train/strategy.h"

namespace lockstep::train {

/// Tests the first `samples` of the loader's data set, each rank its share,
/// and gives all ranks the result of all. No accuracy for a strategy without
/// classes. `names`: of the rows of its tables.
/// Errors: as `Strategy::test`, `Loader::next` and `ProcessGroup::sum`.
Score evaluate(
    Strategy& strategy,
    Loader<Batch>& loader,
    std::int64_t samples,
    const dist::ProcessGroup& group = {},
    std::span<const std::string> names = {});

} // namespace lockstep::train
