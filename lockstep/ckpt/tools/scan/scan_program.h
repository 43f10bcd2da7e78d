// SPDX-License-Identifier: BSD-3-Clause
//
// What an exported program has Python run: the operators of its graph, texts
// that are evaluated, modules that are imported, compiled libraries.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/tools/scan/scan_report.h"
#include "lockstep/ckpt/zip/zip_reader.h"

namespace lockstep::ckpt::internal {

// PyTorch looks records up in any case, so that no name here has one.

/// True for a record that PyTorch reads as a graph, also of torch before 2.8.
bool is_program_record(std::string_view name);

/// True for the graph of torch before 2.8, whose archive does not say what it
/// is.
bool is_old_program_record(std::string_view name);

/// True for a record of AOTInductor, which PyTorch compiles or loads.
bool is_compiled_record(std::string_view name);

/// True for a record that PyTorch unpickles because of its name, whatever the
/// tables say.
bool is_object_record(std::string_view name);

/// True for a text that may be the JSON of an object or a list.
bool starts_like_json(std::string_view text);

/// Notes what the graph in `json` has run. A text that starts like JSON but is
/// none is unreadable. Returns false if it is unreadable or there is no graph
/// in it, unless the archive says that it is a program (`is_sure`).
bool scan_program(
    std::string_view json,
    const std::string& record,
    bool is_sure,
    ScanCollector& out);

/// Records of a program that tables name, in lower case.
struct PayloadRecords {
  /// The raw bytes of tensors.
  std::set<std::string, std::less<>> tensors = {};
  /// Python unpickles them.
  std::set<std::string, std::less<>> pickles = {};
  /// A table that cannot be read: what it names is unknown.
  std::vector<Error> unreadable = {};
};

PayloadRecords payload_records(const ZipReader& zip, const Limits& limits);

} // namespace lockstep::ckpt::internal
