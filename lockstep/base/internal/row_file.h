// SPDX-License-Identifier: BSD-3-Clause
//
// A text file that only grows: CSV tables, logs, JSON lines. A failing disk
// loses no row and doubles none, and a resumed run cuts the file back to where
// its checkpoint was taken.
//   auto rows = RowFile::open(fs, "run/metrics.csv", checkpoint.rows_bytes);
//   rows->append("1,0.25");
//   const std::uint64_t offset = rows->size();   // for the next checkpoint,
//   rows->sync();                                // which is saved after this
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/base/internal/growing_file.h"

namespace lockstep {

/// One open file of rows. Nobody else may write to the file meanwhile; a second
/// `RowFile` is refused, also in another process.
///
/// How it is written, see GrowingFile: text is kept in memory until it is
/// durable.
/// Ownership: the file system must outlive this object. The destructor writes
/// what is pending, once, and does not wait for the disk.
/// Threads: all calls are safe to run at the same time. Only a `sync` waits for
/// another; an `append` goes on while an fsync of another thread runs.
class RowFile {
 public:
  static constexpr std::uint64_t kKeepAll =
      std::numeric_limits<std::uint64_t>::max();
  /// Units: bytes of lines that wait in memory while the disk fails.
  static constexpr std::uint64_t kMaxPendingBytes =
      GrowingFile::kMaxPendingBytes;

  /// Opens `path`, a link to it too, and creates it if it is missing. Cuts it
  /// to the last whole line within `keep_bytes`, and makes that and its name
  /// durable. Errors: kIo (E_LOCKED if somebody writes to it), kNotFound for
  /// the folder, kUnsupported for what is no regular file.
  static Result<RowFile> open(
      FileSystem& fs,
      const std::string& path,
      std::uint64_t keep_bytes = kKeepAll);

  RowFile(RowFile&& other) noexcept;
  RowFile& operator=(RowFile&& other) noexcept;
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  ~RowFile();

  /// Adds `line` and a line feed to the file, after all that is pending.
  /// Errors: kIo. The line is then pending: what reached the file of it is cut
  /// off again (as far as the disk obeys), and the next `append`, `flush` or
  /// `sync` writes it. Only if more than `kMaxPendingBytes` would be pending is
  /// it dropped and counted.
  Status append(std::string_view line);

  /// Writes what is pending, if anything. Errors: as `append`; nothing is lost.
  Status flush();

  /// Brings the file to the disk, at least up to `size()` as of the call.
  /// Errors: as `flush`. After a failed fsync the kernel may have dropped what
  /// it held: the next call opens the file again and writes it once more.
  Status sync();

  /// Units: bytes of all lines, pending ones included: the offset that a
  /// checkpoint records, after a `sync`, to be cut to by a later `open`.
  [[nodiscard]] std::uint64_t size() const;

  /// Units: bytes by which the file was shorter than `keep_bytes` when it was
  /// opened; 0 for `kKeepAll`.
  [[nodiscard]] std::uint64_t missing_bytes() const;

  /// Units: lines that `append` dropped.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  RowFile(std::unique_ptr<GrowingFile> file, std::uint64_t missing_bytes);

  std::unique_ptr<GrowingFile> file_;
  std::uint64_t missing_bytes_ = 0;
};

} // namespace lockstep
