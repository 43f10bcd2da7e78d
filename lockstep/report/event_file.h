// SPDX-License-Identifier: BSD-3-Clause
//
// Files that TensorBoard reads: numbers over steps.
//   auto events = EventFile::create(fs, "runs/a", /*first_step=*/1).value();
//   events.add(100, {{"Loss/train", 0.5F}, {"LearningRate", 0.1F}});
//
// A record is `u64 length | u32 checksum of it | bytes | u32 checksum of them`;
// the bytes are a protobuf message. A torn last record is skipped by readers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"
#include "lockstep/base/internal/growing_file.h"

namespace lockstep::report {

/// One number and what it is called: "Loss/train" is in the group "Loss".
struct Scalar {
  std::string_view tag = {};
  float value = 0.0F;
};

/// One open file. How it is written, and what becomes of a record that a
/// failing disk did not take, see GrowingFile.
/// Threads: all calls are safe to run at the same time.
class EventFile {
 public:
  /// Makes a new file in `folder`, after the names of those that are there, and
  /// says in it that `first_step` comes next: what older files hold from that
  /// step on is void for TensorBoard.
  /// Ownership: `fs` must outlive the file. Errors: kIo.
  static Result<EventFile>
  create(FileSystem& fs, const std::string& folder, std::int64_t first_step);

  EventFile(EventFile&&) noexcept;
  EventFile& operator=(EventFile&&) noexcept;
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile();

  /// Adds numbers of `step`, stamped with the time of now. Errors: kIo.
  Status add(std::int64_t step, std::span<const Scalar> scalars);
  /// Makes the file durable. Errors: kIo. What an fsync that failed may have
  /// lost, the next call writes once more.
  Status sync();

 private:
  explicit EventFile(std::unique_ptr<GrowingFile> file);
  std::unique_ptr<GrowingFile> file_;
};

/// CRC-32C (Castagnoli) of `bytes`, as TensorBoard masks it.
std::uint32_t masked_crc32c(std::string_view bytes);

/// What `EventFile` begins the name of every file with.
inline constexpr std::string_view kEventFilePrefix = "events.out.tfevents.";

} // namespace lockstep::report
