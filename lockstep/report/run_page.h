// SPDX-License-Identifier: BSD-3-Clause
//
// `report.html`: a run on one page, which needs no other file, no network and
// no script.
//   RunHistory history;
//   history.add_all(text of metrics.jsonl);
//   std::string html = run_page({.folder = "runs/a", .env = ...}, history);
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/fs.h"
#include "lockstep/report/run_history.h"

namespace lockstep::report {

/// The records of a run, as its folder holds them. What is missing or broken
/// leaves its part of the page out.
struct RunRecords {
  /// Where they are: the title.
  std::string folder = {};
  /// "running", "finished", "interrupted", "failed", "killed"; and why.
  std::string state = {};
  std::string why = {};
  /// When the page was written, for people.
  std::string written = {};
  /// Texts of env.json, report.json and log.txt.
  std::string env = {};
  std::string details = {};
  std::string log = {};
};

/// The whole page: curves, classes, samples, times, starts, settings.
std::string run_page(const RunRecords& records, const RunHistory& history);

/// Writes `report.html` of a run anew from the records in its `folder`; `state`
/// and `why` as in `RunRecords`. Errors: kIo.
Status write_run_page(
    FileSystem& fs,
    const std::string& folder,
    std::string_view state,
    std::string_view why);

} // namespace lockstep::report
