// SPDX-License-Identifier: BSD-3-Clause
//
// Checks every byte of a checkpoint: CRCs, bounds, layout, alignment. Goes on
// after a damaged record, so that the report names all tensors that are lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/ckpt/load.h"

namespace lockstep::ckpt {

/// One thing that is wrong or odd.
struct Finding {
  /// "E_CRC" for damage, "W_..." for an oddity.
  std::string detail = {};
  std::string message = {};
  /// Record without the archive's root, if any.
  std::string record = {};
  /// Names of the tensors whose bytes are affected.
  std::vector<std::string> tensors = {};
};

/// What `verify` found.
struct VerifyReport {
  std::uint64_t records = 0;
  /// Units: bytes whose CRC was compared.
  std::uint64_t checked_bytes = 0;
  std::uint64_t tensors = 0;
  /// Damage: the file must not be used.
  std::vector<Finding> errors = {};
  /// Oddities: other readers may stumble, the bytes are fine.
  std::vector<Finding> warnings = {};

  [[nodiscard]] bool is_sound() const noexcept {
    return errors.empty();
  }
};

/// Checks `path`, of any format; one without checksums is read to its end.
/// Errors: only what keeps the file from being opened at all (an unknown
/// format, a broken directory, kNotFound, kIo); damage inside goes into the
/// report.
Result<VerifyReport> verify(
    const std::string& path,
    const LoadOptions& options = {},
    FileSystem& fs = real_fs());

/// The same for bytes in memory. Ownership: shares `source`.
Result<VerifyReport> verify(
    const std::shared_ptr<ByteSource>& source,
    const std::string& name,
    const LoadOptions& options = {});

} // namespace lockstep::ckpt
