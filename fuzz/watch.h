// SPDX-License-Identifier: BSD-3-Clause
//
// What one input may take. Work that grows faster than the input is a finding,
// as a crash is: so the fuzzer looks for it.
//   Watch watch(input);
//   ckpt::scan(watch.source(), "input", watch.limits());
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"

namespace lockstep::fuzz {

/// Counts what is read of the input and what is allocated from its making to
/// its end, where it aborts if that is more than the input's size allows.
/// Threads: one at a time.
class Watch {
 public:
  explicit Watch(ByteSpan input);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// The input as a file that is not mapped. Ownership: views the input.
  [[nodiscard]] std::shared_ptr<ckpt::ByteSource> source() const;
  /// Small ones, so that little is free in any case.
  [[nodiscard]] const ckpt::Limits& limits() const {
    return limits_;
  }
  /// How the input is read: with these limits, whatever its checksums.
  [[nodiscard]] ckpt::LoadOptions options() const {
    return {.check_crc = false, .limits = limits_};
  }

 private:
  class Source;

  std::shared_ptr<Source> source_;
  ckpt::Limits limits_;
  std::uint64_t allocated_before_;
};

/// Units: bytes allocated by this process so far.
std::uint64_t allocated_bytes();

} // namespace lockstep::fuzz
