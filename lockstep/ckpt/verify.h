// SPDX-License-Identifier: BSD-3-Clause
//
// Is a checkpoint sound, and what does it hold? Damage is found by `verify`,
// content is compared by `digest`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ckpt/load.h"

#pragma GCC visibility push(default)
namespace lockstep::ckpt {

// Checks every byte of a checkpoint: CRCs, bounds, layout, alignment. Goes on
// after a damaged record, so that the report names all tensors that are lost.

/// One thing that is wrong or odd.
struct Finding {
  /// "E_CRC" for damage, "W_..." for an oddity.
  std::string detail = {};
  std::string message = {};
  /// Record without the archive's root, if any.
  std::string record = {};
  /// Names of the tensors whose bytes are affected.
  std::vector<std::string> tensors = {};
  /// Of an error: kUnsupported and kUnsafe are no damage.
  ErrorCode code = ErrorCode::kCorrupt;
  /// What helps, if that is known.
  std::string hint = {};

  [[nodiscard]] bool is_damage() const noexcept {
    return code != ErrorCode::kUnsupported && code != ErrorCode::kUnsafe;
  }
};

/// What `verify` found.
struct VerifyReport {
  std::uint64_t records = 0;
  /// Units: bytes whose CRC was compared.
  std::uint64_t checked_bytes = 0;
  std::uint64_t tensors = 0;
  /// Damage, or what is not read: the file must not be used.
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

// The content digest: equal weights have equal digests, whatever the format,
// the byte order, the strides and the sharing.
//   auto rows = digest_rows(file.root);             // Result<...>
//   digest_text(*rows);                             // 64 hex digits
// It is the SHA-256 of the lines "name TAB type TAB shape TAB sha256 LF",
// sorted by name bytewise; backslash, tab, line feed and carriage return in a
// name are written \\, \t, \n and \r. Location, requires_grad, storages and
// metadata do not count, nor what a module holds beside its state_dict
// (`tensors_beside_state`).

/// One tensor of a digest.
struct DigestRow {
  /// Dotted path: "state_dict.fc.weight", as `for_each_tensor` names it.
  std::string name = {};
  /// Storage class without "Storage" ("Float", "Long"); for newer types the
  /// name of the dtype ("uint16").
  std::string type = {};
  /// "[2, 3]"
  std::string shape = {};
  /// SHA-256 of the row-major little-endian bytes, and of what the integers of
  /// a quantized tensor stand for; 64 hex digits.
  std::string sha256 = {};
  /// Units: bytes that were hashed.
  std::uint64_t bytes = 0;

  friend bool operator==(const DigestRow&, const DigestRow&) = default;
};

/// The tensors below `root`, sorted. Reads their bytes, in blocks, and refuses
/// views that repeat more than `max_expanded_bytes`.
/// Errors: those of the storages, with the tensor's name; kUnsafe (E_LIMIT).
Result<std::vector<DigestRow>> digest_rows(
    const Value& root,
    const Limits& limits = {});

/// Storage class without "Storage", or the dtype's name where there is none.
std::string digest_type(DType dtype);

/// The line of a row, its name escaped, with its line feed.
std::string digest_line(const DigestRow& row);

/// SHA-256 over the lines of sorted `rows`, 64 hex digits.
std::string digest_text(std::span<const DigestRow> rows);

/// `digest_text` of `digest_rows`. Errors: as `digest_rows`.
Result<std::string> digest(const Value& root, const Limits& limits = {});

} // namespace lockstep::ckpt
#pragma GCC visibility pop
