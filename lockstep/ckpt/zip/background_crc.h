// SPDX-License-Identifier: BSD-3-Clause
//
// The checksum of a large payload, computed by a second thread while the caller
// writes the same bytes: the kernel's copy takes longer, so that the checksum
// costs nothing but a core.
//   BackgroundCrc background;
//   { auto job = background.start(bytes, 0);  write(bytes);  crc =
//   job.finish(); }
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt {

/// One thread, started with the first job. Threads: one job at a time.
class BackgroundCrc {
 public:
  /// A checksum under way. Its bytes must live until it ends.
  class Job {
   public:
    explicit Job(BackgroundCrc& owner) noexcept : owner_(owner) {}
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    /// The CRC; computed here if the other thread has not begun. Once only.
    std::uint32_t finish();

   private:
    BackgroundCrc& owner_;
    bool is_finished_ = false;
  };

  BackgroundCrc() = default;
  ~BackgroundCrc();
  BackgroundCrc(const BackgroundCrc&) = delete;
  BackgroundCrc& operator=(const BackgroundCrc&) = delete;

  /// The CRC of `bytes`, continued from `seed`.
  Job start(ByteSpan bytes, std::uint32_t seed);

 private:
  enum State : std::uint32_t { kIdle, kPosted, kTaken, kDone, kStopped };

  void change(State state) noexcept;
  void start_thread();
  void loop();
  std::uint32_t wait();

  std::atomic<std::uint32_t> state_{kIdle};
  ByteSpan bytes_ = {};
  std::uint32_t crc_ = 0;
  bool is_tried_ = false;
  std::thread thread_ = {};
};

} // namespace lockstep::ckpt
