// SPDX-License-Identifier: BSD-3-Clause
//
// Rescues the sound tensors of a damaged zip checkpoint into a new file. A
// tensor counts as sound if its record is complete and its CRC is right.
//   auto report = salvage(*open_source("cut.pth"), "rescued.pth");
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"

namespace lockstep::ckpt {

/// A tensor that is not in the new file.
struct LostTensor {
  std::string name = {};
  /// "the bytes are damaged: ..."
  std::string reason = {};
};

/// What was rescued.
struct SalvageReport {
  /// Tensors by name.
  std::uint64_t rescued = 0;
  std::vector<LostTensor> lost = {};
  /// The directory was lost: records were found by their local headers.
  bool is_without_directory = false;
  /// The tree held values that are not written (classes): the new file is one
  /// dict of names and tensors.
  bool is_flat = false;
};

/// Reads `source`, writes `out` atomically as `save_options` say; both may not
/// be the same file. Without `out` nothing is written. In the copy, entries of
/// dicts whose tensor is lost are gone; elements of lists are None. Errors:
/// kUnsupported (E_WRONG_FORMAT) for a file that is not a zip; kCorrupt if the
/// pickle is lost, since nothing else names the tensors; kIo.
Result<SalvageReport> salvage(
    const std::shared_ptr<ByteSource>& source,
    const std::string& out,
    const LoadOptions& options = {},
    const SaveOptions& save_options = {},
    FileSystem& fs = real_fs());

} // namespace lockstep::ckpt
