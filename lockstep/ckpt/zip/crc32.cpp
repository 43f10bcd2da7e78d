// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/crc32.h"

#include <libdeflate.h>

#include "lockstep/ckpt/zip/crc32_fold.h"

namespace lockstep::ckpt {

std::uint32_t crc32(ByteSpan bytes, std::uint32_t seed) {
  static const bool can_fold = internal::can_fold_crc32();
  const std::size_t rest = bytes.size() % internal::kFoldBytes;
  const auto whole = bytes.first(bytes.size() - rest);
  if (!can_fold && !whole.empty()) {
    return libdeflate_crc32(seed, bytes.data(), bytes.size());
  }
  if (!whole.empty()) {
    seed = internal::fold_crc32(whole, seed);
  }
  // Not by libdeflate: its first call asks the processor what it can, which
  // takes a virtual machine longer than a few bytes are worth.
  return internal::short_crc32(bytes.last(rest), seed);
}

} // namespace lockstep::ckpt
