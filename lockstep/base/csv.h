// SPDX-License-Identifier: BSD-3-Clause
//
// Tables as text (RFC 4180 quoting; lines end with "\n"), and a file that grows
// by one row at a time and can go on where a checkpoint left it.
//   auto file = CsvFile::create(real_fs(), "steps.csv", {"step", "loss"});
//   file->append({"50", shortest(loss)});
#pragma once

#include <initializer_list>

#include "lockstep/base/fs.h"

namespace lockstep {

/// One line of a table with its "\n". Fields with a comma, a quote or a line
/// break are put into quotes.
std::string csv_row(std::span<const std::string> fields);

/// A table on disk. Each row is handed to the system at once, so it is there
/// after the program is killed. Threads: one at a time.
class CsvFile {
 public:
  /// Starts an empty table with a header; an older file is emptied.
  /// Ownership: `fs` must outlive the file.
  static Result<CsvFile> create(
      FileSystem& fs,
      const std::string& path,
      std::vector<std::string> columns);

  /// Goes on after the first `keep_bytes` bytes and drops the rest (rows that
  /// came after the checkpoint). A missing file is created.
  /// Errors: kMismatch if the file is shorter or has another header; it is
  /// then unchanged.
  static Result<CsvFile> resume(
      FileSystem& fs,
      const std::string& path,
      std::vector<std::string> columns,
      std::uint64_t keep_bytes);

  /// Adds a row. Errors: kInvalidArgument if the number of fields is not that
  /// of the columns; kIo.
  Status append(std::span<const std::string> fields);
  Status append(std::initializer_list<std::string> fields);

  /// Units: bytes in the file, to be stored for `resume`.
  [[nodiscard]] std::uint64_t size() const {
    return size_;
  }

 private:
  CsvFile(
      std::unique_ptr<WritableFile> file,
      std::string path,
      std::size_t columns,
      std::uint64_t size);
  Status write(const std::string& text);

  std::unique_ptr<WritableFile> file_;
  std::string path_;
  std::size_t columns_;
  std::uint64_t size_;
};

} // namespace lockstep
