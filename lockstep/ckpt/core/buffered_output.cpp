// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/core/buffered_output.h"

namespace lockstep::ckpt::internal {
namespace {

constexpr std::size_t kGatherBytes = 256 << 10;

} // namespace

Status BufferedOutput::write(ByteSpan bytes) {
  position_ += bytes.size();
  if (buffer_.size() + bytes.size() > kGatherBytes) {
    LOCKSTEP_TRY(flush());
    if (bytes.size() > kGatherBytes / 2) {
      return file_.write(bytes);
    }
  }
  buffer_.append(as_text(bytes));
  return {};
}

Status BufferedOutput::flush() {
  if (buffer_.empty()) {
    return {};
  }
  LOCKSTEP_TRY(file_.write(as_byte_span(buffer_)));
  buffer_.clear();
  return {};
}

} // namespace lockstep::ckpt::internal
