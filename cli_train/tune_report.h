// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep bench --tune` prints.
#pragma once

#include <string>

#include "cli_train/tune.h"
#include "lockstep/base/json.h"

namespace lockstep::cli_train {

/// A table of the convolutions, and the sums.
std::string tune_text(const BenchRequest& request, const TuneResult& result);

/// The document "lockstep.tune/1"; docs/schemas/tune.json.
Json tune_json(const BenchRequest& request, const TuneResult& result);

} // namespace lockstep::cli_train
