// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/crc32.h"

#include <libdeflate.h>

#include "lockstep/ckpt/internal/crc32_fold.h"

namespace lockstep::ckpt {

std::uint32_t crc32(ByteSpan bytes, std::uint32_t seed) {
  constexpr std::size_t kWorthIt = 4 * internal::kFoldBytes;
  static const bool can_fold = internal::can_fold_crc32();
  if (can_fold && bytes.size() >= kWorthIt) {
    const auto whole =
        bytes.first(bytes.size() - bytes.size() % internal::kFoldBytes);
    seed = internal::fold_crc32(whole, seed);
    bytes = bytes.subspan(whole.size());
  }
  // libdeflate takes a null pointer as "give me the first value".
  return bytes.empty() ? seed
                       : libdeflate_crc32(seed, bytes.data(), bytes.size());
}

} // namespace lockstep::ckpt
