// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep bench` prints.
#pragma once

#include <string>

#include "cli_train/bench_steps.h"
#include "lockstep/base/json.h"

namespace lockstep::cli_train {

/// Two tables: the step, and its layers.
std::string bench_text(const BenchRequest& request, const BenchResult& result);

/// The document "lockstep.bench/1"; docs/schemas/bench.json.
Json bench_json(const BenchRequest& request, const BenchResult& result);

} // namespace lockstep::cli_train
