// SPDX-License-Identifier: BSD-3-Clause
//
// What the reports of `lockstep bench` have in common.
#pragma once

#include <string>
#include <vector>

#include "cli_train/bench_request.h"
#include "lockstep/base/json.h"

namespace lockstep::cli_train {

/// What the model is, and what runs it: a line and an empty one.
std::string bench_title(const BenchRequest& request);

/// The same as the first members of an object.
Json bench_facts(const BenchRequest& request);

/// "3.61 ms".
std::string milliseconds_text(double seconds);

using TableRow = std::vector<std::string>;

/// Columns as wide as they must be, the first to the left and all others to the
/// right. All rows have as many cells.
std::string text_table(const std::vector<TableRow>& rows);

} // namespace lockstep::cli_train
