// SPDX-License-Identifier: BSD-3-Clause
//
// SHA-256 by nettle, for digests of content.
//   Sha256 hash; hash.update(bytes); hash.hex()
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <nettle/sha2.h>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt::internal {

class Sha256 {
 public:
  Sha256() {
    sha256_init(&context_);
  }

  void update(ByteSpan bytes) {
    sha256_update(
        &context_,
        bytes.size(),
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
        reinterpret_cast<const std::uint8_t*>(bytes.data()));
  }

  /// 64 lower-case digits; starts anew afterwards.
  std::string hex() {
    std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
    sha256_digest(&context_, digest.size(), digest.data());
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : digest) {
      text += kDigits[byte >> 4U];
      text += kDigits[byte & 15U];
    }
    return text;
  }

 private:
  sha256_ctx context_{};
};

} // namespace lockstep::ckpt::internal
