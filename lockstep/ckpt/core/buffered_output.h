// SPDX-License-Identifier: BSD-3-Clause
//
// Gathers small writes; large blocks go straight to the file. For the writers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt::internal {

/// Ownership: the file must outlive it. Call `flush` at the end.
class BufferedOutput {
 public:
  explicit BufferedOutput(WritableFile& file) : file_(file) {}

  /// Errors: kIo.
  Status write(ByteSpan bytes);
  Status write(std::string_view text) {
    return write(as_byte_span(text));
  }
  /// Errors: kIo.
  Status flush();
  /// Units: bytes written so far.
  [[nodiscard]] std::uint64_t position() const noexcept {
    return position_;
  }

 private:
  WritableFile& file_;
  std::string buffer_;
  std::uint64_t position_ = 0;
};

} // namespace lockstep::ckpt::internal
