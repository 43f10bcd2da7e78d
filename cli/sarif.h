// SPDX-License-Identifier: BSD-3-Clause
//
// Scan reports in the Static Analysis Results Interchange Format, which code
// scanners of forges and editors show.
#pragma once

#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/ckpt/scan.h"

namespace lockstep::cli {

/// A SARIF 2.1.0 log with one run: a result for each finding and each part that
/// could not be scanned.
Json sarif_json(const std::vector<ckpt::ScanReport>& reports);

} // namespace lockstep::cli
