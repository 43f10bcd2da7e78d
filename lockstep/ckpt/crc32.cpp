// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/crc32.h"

#include <libdeflate.h>

namespace lockstep::ckpt {

std::uint32_t crc32(ByteSpan bytes, std::uint32_t seed) {
  // libdeflate takes a null pointer as "give me the first value".
  return bytes.empty() ? seed
                       : libdeflate_crc32(seed, bytes.data(), bytes.size());
}

} // namespace lockstep::ckpt
