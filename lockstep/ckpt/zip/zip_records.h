// SPDX-License-Identifier: BSD-3-Clause
//
// The bytes of a zip file's structures as PyTorch writes them, for ZipWriter.
// The arithmetic is in zip_layout.h.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/ckpt/zip/zip_writer.h"

namespace lockstep::ckpt::internal {

/// Up to the payload, padding included.
std::string local_header(const ZipEntryPlan& entry);

/// After the payload; empty for a record without bytes.
std::string descriptor(const ZipEntryPlan& entry);

/// The entry in the directory.
std::string central_entry(const ZipEntryPlan& entry);

/// Where the directory is. Units: bytes.
struct EndPlan {
  std::uint64_t count = 0;
  std::uint64_t directory_offset = 0;
  std::uint64_t directory_bytes = 0;
  /// Where these records will start.
  std::uint64_t end64_offset = 0;
};

/// Zip64 end record, locator and end record: always 98 bytes.
std::string end_records(const EndPlan& plan);

} // namespace lockstep::ckpt::internal
