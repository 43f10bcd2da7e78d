// SPDX-License-Identifier: BSD-3-Clause
//
// The members of a tar archive as sources in memory. Nothing is unpacked: names
// are only compared, never used as paths, and what is not a plain file is
// refused.
//   auto members = TarMembers::open(source, limits);
//   auto pickle = members->find("pickle");          // null if it is missing
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/checkpoint.h"

namespace lockstep::ckpt {

/// What becomes of links, devices and pipes, which have no content.
enum class SpecialMembers {
  kRefuse,
  /// They are listed; headers without a magic number, from before POSIX, are
  /// read, too.
  kNote,
};

/// One of those.
struct SpecialMember {
  std::string name = {};
  /// The member to which a link leads.
  std::string target = {};
};

/// A checked directory. Threads: const calls are safe.
class TarMembers {
 public:
  /// Reads all headers. Errors: kCorrupt (E_TAR) with the offset of the header:
  /// wrong checksum, size beyond the file, a name twice, an absolute name or
  /// one with "..", links, devices, sparse files; kUnsafe (E_LIMIT); kIo.
  static Result<TarMembers> open(
      const std::shared_ptr<ByteSource>& source,
      const Limits& limits,
      SpecialMembers special = SpecialMembers::kRefuse);

  /// The bytes of a member, null without one.
  [[nodiscard]] std::shared_ptr<ByteSource> find(std::string_view name) const;

  /// In the order of the file.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept {
    return names_;
  }
  [[nodiscard]] const std::vector<SpecialMember>& specials() const noexcept {
    return specials_;
  }
  /// W_TRAILING if something follows the end of the archive.
  [[nodiscard]] const std::vector<Warning>& warnings() const noexcept {
    return warnings_;
  }

 private:
  TarMembers() = default;
  friend class TarParser;

  std::map<std::string, std::shared_ptr<ByteSource>, std::less<>> members_;
  std::vector<std::string> names_;
  std::vector<SpecialMember> specials_;
  std::vector<Warning> warnings_;
};

} // namespace lockstep::ckpt
