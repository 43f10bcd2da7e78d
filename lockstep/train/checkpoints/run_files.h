// SPDX-License-Identifier: BSD-3-Clause
//
// The text files of a run that grow by rows: tables, JSON lines, the log. A
// checkpoint counts the rows; a run that goes on cuts each file back to them,
// so that no row is lost and none appears twice.
//   RunFiles files(fs, [&](const Error& error) { warn(error); });
//   RunFile& steps = files.open(folder.file("steps.csv"), "step,loss");
//   steps.append("1,2.302");
//
// Rows are counted, not bytes: some hold times, and the checkpoints of two
// equal runs shall be equal. Files that are written anew as a whole are
// replaced.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/internal/row_file.h"
#include "lockstep/train/state_part.h"

namespace lockstep::train {

/// Told of a disk that fails: the first error, and again after it worked.
using ErrorHandler = std::function<void(const Error&)>;

/// One of the files. Threads: as `RowFile`.
class RunFile {
 public:
  /// Tells rows from other lines, such as messages of a log.
  using IsRow = std::function<bool(std::string_view line)>;

  RunFile(RowFile file, std::int64_t rows, ErrorHandler on_error);

  /// Adds a row. A failing disk is told once; rows wait until it works.
  void append(std::string_view row);
  /// Adds a line that is not counted.
  void note(std::string_view line);
  Status sync();
  [[nodiscard]] std::int64_t rows() const;

 private:
  void report(const Status& status);

  RowFile file_;
  ErrorHandler on_error_;
  mutable std::mutex mutex_;
  std::int64_t rows_ = 0;
  bool is_failing_ = false;
};

/// The files of one run folder.
class RunFiles {
 public:
  /// Ownership: `fs` must outlive it.
  RunFiles(FileSystem& fs, ErrorHandler on_error);

  /// Opens a file, with `header` (if any) as its first line. Keeps the rows
  /// that the loaded checkpoint counted, and what is no row between them: the
  /// next row and all behind it go. Keeps all rows if no checkpoint told. Fewer
  /// rows than were counted are reported.
  /// Ownership: valid as long as this object.
  /// Errors: throws kIo, kMismatch for a file with another header.
  RunFile& open(
      const std::string& path,
      std::string_view header = {},
      const RunFile::IsRow& is_row = [](std::string_view) { return true; });

  /// Text of a file of the folder; empty if there is none that can be read.
  [[nodiscard]] std::string read(const std::string& path) const;
  /// The lines at the end of such a file: at most so many bytes, from the start
  /// of a line on.
  [[nodiscard]] std::string read_end(
      const std::string& path,
      std::uint64_t most_bytes) const;
  /// Writes a whole file in place of the old one, if any. A failing disk is
  /// told once, and the old file stays: nothing depends on such a file.
  void replace(const std::string& path, std::string_view text);

  /// Tells of the first failure of a file that no run depends on, and again
  /// after it worked.
  void report(const Status& status);
  /// Another file that `sync` makes durable. Its failures are only reported.
  void also_sync(std::function<Status()> sync);

  /// Makes all files that grow durable. Threads: rows may be added meanwhile.
  Status sync();

  /// `rows`: {'steps.csv': 16, ...}. A checkpoint may lack it. Load it before
  /// the files are opened. Ownership: borrows this object.
  StatePart part();
  /// Files that are opened later begin without rows, whatever was loaded.
  void start_anew();

 private:
  /// Rows of the file that the checkpoint counted.
  [[nodiscard]] std::int64_t counted(const std::string& name) const;

  FileSystem& fs_;
  ErrorHandler on_error_;
  /// What was loaded; none: nothing was.
  std::optional<std::vector<std::pair<std::string, std::int64_t>>> saved_ = {};
  std::vector<std::pair<std::string, std::unique_ptr<RunFile>>> files_ = {};
  std::mutex mutex_; // of what follows
  std::vector<std::function<Status()>> also_synced_ = {};
  /// Whether the last `report` told of a failure.
  bool is_failing_ = false;
};

} // namespace lockstep::train
