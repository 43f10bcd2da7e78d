// SPDX-License-Identifier: BSD-3-Clause
//
// A file that only grows, on a disk that may fail: no byte is lost, none comes
// twice, and a `sync` that succeeds has brought all of it to the disk.
//   auto file = GrowingFile::open(fs, "run/events").value();
//   file->append(record);
//   file->sync();
// RowFile (row_file.h) makes rows of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"

namespace lockstep {

/// One open file, to which nobody else may write meanwhile.
///
/// Bytes are kept in memory until they are durable, and written at their own
/// offset: to write them again doubles nothing. Half of `kMaxPendingBytes`
/// after the last fsync, `append` does one by itself.
/// Ownership: the file system must outlive this object. The destructor writes
/// what is pending, once, and does not wait for the disk.
/// Threads: all calls are safe to run at the same time. Only a `sync` waits for
/// another; an `append` goes on while an fsync of another thread runs.
class GrowingFile {
 public:
  /// Units: bytes that wait in memory while the disk fails.
  static constexpr std::uint64_t kMaxPendingBytes = 1 << 20;

  /// How many of the bytes that are there stay.
  using Kept = std::function<Result<std::uint64_t>()>;

  /// Opens `path`, creates it if it is missing, cuts it to what `kept` says
  /// once nobody else may write to it (without one, to nothing), and makes that
  /// and its name durable. Errors: kIo (E_LOCKED if somebody writes to it),
  /// kNotFound for the folder, kUnsupported for what is no regular file, and
  /// those of `kept`.
  static Result<std::unique_ptr<GrowingFile>>
  open(FileSystem& fs, const std::string& path, const Kept& kept = {});

  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;
  ~GrowingFile();

  /// Adds `bytes`, after all that is pending. Errors: kIo. They are then
  /// pending: what reached the file of them is cut off again (as far as the
  /// disk obeys), and the next call writes them. Only if more than
  /// `kMaxPendingBytes` would be pending are they dropped and counted.
  Status append(std::string_view bytes);

  /// Writes what is pending, if anything. Errors: as `append`; nothing is lost.
  Status flush();

  /// Brings the file to the disk, at least up to `size()` as of the call.
  /// Errors: as `flush`. After a failed fsync the kernel may have dropped what
  /// it held: the next call opens the file again and writes it once more.
  Status sync();

  /// Units: bytes, pending ones included.
  [[nodiscard]] std::uint64_t size() const;

  /// Units: calls of `append` whose bytes were dropped.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  GrowingFile(FileSystem& fs, std::string path);

  [[nodiscard]] std::string_view pending() const;
  Status start(const Kept& kept);
  Status reopen();
  Status write_pending();
  Status sync_in_turn();

  FileSystem& fs_;
  const std::string path_;
  // Held during an fsync, and taken before `mutex_`, which guards all below.
  std::mutex sync_mutex_;
  mutable std::mutex mutex_;
  // Null after a failed fsync. Appending and syncing may overlap.
  std::shared_ptr<WritableFile> file_;
  // All bytes behind the first `durable_` bytes of the file.
  std::string tail_;
  // Units: bytes, durable_ <= written_ <= reached_. Bytes up to `written_` need
  // not be written again; those up to `reached_` are in the file, durable or
  // not.
  std::uint64_t durable_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t reached_ = 0;
  std::uint64_t dropped_ = 0;
};

} // namespace lockstep
