// SPDX-License-Identifier: BSD-3-Clause
//
// The header of a member of a tar archive: one block of 512 bytes.
//   if (starts_like_tar(head)) { ... }              // Python would open it
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lockstep/base/fs.h"

namespace lockstep::ckpt {

/// Units: bytes.
inline constexpr std::uint64_t kTarBlock = 512;

/// First byte and length of a part of the header.
struct TarField {
  std::size_t begin = 0;
  std::size_t length = 0;
};

inline constexpr TarField kTarName{0, 100};
inline constexpr TarField kTarLink{157, 100};
inline constexpr TarField kTarPrefix{345, 155};
inline constexpr std::size_t kTarType = 156;

/// True if `head` starts a tar archive (POSIX or GNU). `head`: the first bytes
/// of a file.
bool is_tar(ByteSpan head);

/// True if Python's `tarfile` takes the first bytes of a file for a tar
/// archive. It goes by the checksum alone, so that files of other formats may
/// be one, too.
bool starts_like_tar(ByteSpan head);

/// The field up to its first zero.
std::string_view tar_text(ByteSpan header, TarField field);

/// Units: bytes of the member. Nothing if the header has no number there.
std::optional<std::uint64_t> tar_size(ByteSpan header);

/// True if the checksum is right, spelled as POSIX does it.
bool has_right_checksum(ByteSpan header);

} // namespace lockstep::ckpt
