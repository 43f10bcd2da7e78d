// SPDX-License-Identifier: BSD-3-Clause
//
// What is left of a damaged zip checkpoint, for salvage.
//   auto remains = open_remains(source, options);
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt::internal {

/// Why a part is lost.
inline constexpr const char* kForeign =
    "its record is of another file, whose directory is at the end";

/// What is wrong with each storage; empty text for a sound one.
using Verdicts = std::map<const Storage*, std::string>;

/// The value, and what is lost beside it; names of records without root.
struct Remains {
  Checkpoint file = {};
  /// Records beside the value that were cut.
  std::vector<std::string> cut = {};
  /// Records and folders of a TorchScript program.
  std::set<std::string> script = {};
  /// Records of another file that are no part of the value.
  std::set<std::string> foreign = {};
  /// Storages that do not count, and why.
  Verdicts refused = {};
  /// The directory was lost, or is that of another file.
  bool is_without_directory = false;
};

/// Errors: those of the archive if no record is found; those of the pickle.
Result<Remains> open_remains(
    const std::shared_ptr<ByteSource>& source,
    const LoadOptions& options);

} // namespace lockstep::ckpt::internal
