// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz/read_as.h"

#include <algorithm>

#include "fuzz/exercise.h"

namespace lockstep::fuzz {

void read_as(const ckpt::Format& format, ByteSpan bytes) {
  constexpr std::size_t kHeadBytes = 512;
  ckpt::ReadInput input{
      .source = ckpt::make_source(bytes),
      .head = bytes.first(std::min(bytes.size(), kHeadBytes)),
      .path = "input"};
  input.options.check_crc = false;
  if (format.claims == nullptr) {
    return;
  }
  const auto claimed = format.claims(input);
  if (!claimed || !*claimed) {
    return;
  }
  const auto file = format.read(input);
  if (file) {
    exercise(*file);
  }
}

} // namespace lockstep::fuzz
