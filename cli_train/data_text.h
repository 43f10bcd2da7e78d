// SPDX-License-Identifier: BSD-3-Clause
//
// What `data` prints.
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/data/internal/data_facts.h"

namespace lockstep::cli_train {

/// What was found, and where.
struct DataReport {
  std::string path = {};
  /// The name of the kind: "folder".
  std::string kind = {};
  std::vector<std::string> notes = {};
  bool has_files = false;
  internal::DataFacts facts = {};
  /// Empty without a sheet.
  std::string sheet_path = {};
  std::vector<std::string> sheet_samples = {};
};

/// Tables and lines for people; of long lists the first few.
std::string data_text(const DataReport& report);

/// All of it.
Json data_json(const DataReport& report);

} // namespace lockstep::cli_train
