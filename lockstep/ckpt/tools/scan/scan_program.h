// SPDX-License-Identifier: BSD-3-Clause
//
// What an exported program has Python run: the operators of its graph, texts
// that are evaluated, modules that are imported, compiled libraries.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "lockstep/ckpt/tools/scan/scan_report.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt::internal {

/// True for the record with a graph, also of torch before 2.8.
bool is_program_record(std::string_view name);

/// True for compiled code of AOTInductor.
bool is_compiled_record(std::string_view name);

/// Notes what the graph in `json` has run. A text that is no JSON is
/// unreadable. Returns false if there is no graph in it, unless the archive
/// says that it is a program (`is_sure`).
bool scan_program(
    std::string_view json,
    const std::string& record,
    bool is_sure,
    ScanCollector& out);

/// Records of a program that tables name.
struct PayloadRecords {
  /// The raw bytes of tensors.
  std::set<std::string, std::less<>> tensors = {};
  /// Python unpickles them.
  std::set<std::string, std::less<>> pickles = {};
};

/// Empty where a table cannot be read.
PayloadRecords payload_records(const ZipReader& zip, const Limits& limits);

} // namespace lockstep::ckpt::internal
