// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/background_crc.h"

#include <system_error>

#include "lockstep/ckpt/crc32.h"

namespace lockstep::ckpt {

BackgroundCrc::Job::~Job() {
  if (!is_finished_) {
    static_cast<void>(owner_.wait());
  }
}

std::uint32_t BackgroundCrc::Job::finish() {
  is_finished_ = true;
  return owner_.wait();
}

BackgroundCrc::~BackgroundCrc() {
  if (thread_.joinable()) {
    change(kStopped);
    thread_.join();
  }
}

void BackgroundCrc::change(State state) noexcept {
  state_.store(state);
  state_.notify_all();
}

// Without a second core, or where the system gives no thread, `wait` does all
// the work.
void BackgroundCrc::start_thread() {
  is_tried_ = true;
  if (std::thread::hardware_concurrency() < 2) {
    return;
  }
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::system_error&) {
    return;
  }
}

BackgroundCrc::Job BackgroundCrc::start(ByteSpan bytes, std::uint32_t seed) {
  if (!is_tried_) {
    start_thread();
  }
  bytes_ = bytes;
  crc_ = seed;
  change(kPosted);
  return Job(*this);
}

void BackgroundCrc::loop() {
  while (true) {
    std::uint32_t seen = state_.load();
    if (seen == kStopped) {
      return;
    }
    if (seen == kPosted && state_.compare_exchange_strong(seen, kTaken)) {
      crc_ = crc32(bytes_, crc_);
      change(kDone);
    } else {
      state_.wait(seen);
    }
  }
}

std::uint32_t BackgroundCrc::wait() {
  std::uint32_t seen = kPosted;
  if (state_.compare_exchange_strong(seen, kIdle)) {
    return crc32(bytes_, crc_);
  }
  state_.wait(kTaken);
  state_.store(kIdle);
  return crc_;
}

} // namespace lockstep::ckpt
