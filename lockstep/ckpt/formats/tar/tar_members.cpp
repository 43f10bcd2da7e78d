// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/formats/tar/tar_members.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/fixed_limits.h"
#include "lockstep/ckpt/core/read_error.h"
#include "lockstep/ckpt/formats/tar/tar_header.h"

namespace lockstep::ckpt {
namespace {

// What is not a plain file, and why nobody should want it here.
struct Refused {
  char type = '\0';
  std::string_view what = {};
};
constexpr std::array kRefused{
    Refused{'1', "a hard link"},
    Refused{'2', "a symbolic link"},
    Refused{'3', "a character device"},
    Refused{'4', "a block device"},
    Refused{'6', "a FIFO"},
    Refused{'S', "a sparse file"}};

Error tar_error(std::string message, std::uint64_t offset) {
  return corrupt_file("E_TAR", std::move(message), {}, offset);
}

bool is_zero(ByteSpan bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) {
    return b == std::byte{0};
  });
}

bool is_plain_name(std::string_view name) {
  const std::vector<std::string> parts = split(name, '/');
  return !name.empty() && !name.starts_with('/') &&
         name.find('\\') == std::string_view::npos &&
         std::ranges::find(parts, "..") == parts.end();
}

// Before POSIX a folder was a file whose name ends in a slash.
bool is_folder(ByteSpan header) {
  const char type = static_cast<char>(header[kTarType]);
  return type == '5' ||
         (type == '\0' && tar_text(header, kTarName).ends_with('/'));
}

} // namespace

class TarParser {
 public:
  TarParser(
      std::shared_ptr<ByteSource> source,
      const Limits& limits,
      SpecialMembers special)
      : source_(std::move(source)), limits_(limits), special_(special) {}

  Result<TarMembers> run() {
    for (;;) {
      LOCKSTEP_ASSIGN(const bool more, read_entry());
      if (!more) {
        return std::move(result_);
      }
    }
  }

 private:
  [[nodiscard]] std::uint64_t remaining() const {
    return source_->size() - position_;
  }

  // Units: bytes of the blocks of a member behind its header, as far as the
  // file has them.
  [[nodiscard]] std::uint64_t padded(std::uint64_t size) const {
    return std::min(
        (size + kTarBlock - 1) / kTarBlock * kTarBlock,
        remaining() - kTarBlock);
  }

  // False at the end of the archive.
  Result<bool> read_entry() {
    if (remaining() == 0) {
      return false; // the two empty blocks at the end were lost: no harm
    }
    if (remaining() < kTarBlock) {
      return tar_error(
          format(
              "header is truncated; expected {} bytes, got {}",
              kTarBlock,
              remaining()),
          position_);
    }
    LOCKSTEP_ASSIGN(
        const ByteSpan header,
        source_->view(position_, kTarBlock, scratch_));
    if (is_zero(header)) {
      return read_end();
    }
    const bool is_header = is_tar(header) || special_ == SpecialMembers::kNote;
    if (!is_header || !has_right_checksum(header)) {
      return tar_error("wrong header checksum", position_);
    }
    const char type = static_cast<char>(header[kTarType]);
    const bool is_extension = type == 'x' || type == 'g';
    const auto size =
        extended_size_ && !is_extension ? extended_size_ : tar_size(header);
    if (!size || *size > remaining() - kTarBlock) {
      return tar_error(
          format(
              "member '{}' is larger than the rest of the file; expected at "
              "most {} bytes, got {}",
              escape(tar_text(header, kTarName)),
              remaining() - kTarBlock,
              size ? std::to_string(*size) : "no number"),
          position_);
    }
    LOCKSTEP_TRY(
        is_extension ? read_extended(*size, type == 'g') : take(header, *size));
    position_ += kTarBlock + padded(*size);
    return true;
  }

  Status take(ByteSpan header, std::uint64_t size) {
    const char type = static_cast<char>(header[kTarType]);
    const std::string prefix(tar_text(header, kTarPrefix));
    std::string name(tar_text(header, kTarName));
    if (!prefix.empty()) {
      name = prefix + "/" + name;
    }
    if (!extended_name_.empty()) {
      name = std::exchange(extended_name_, "");
    }
    extended_size_.reset();
    const bool is_noted = special_ == SpecialMembers::kNote && type >= '1' &&
                          type <= '6' && type != '5';
    if (!is_noted) {
      LOCKSTEP_TRY(check_member(name, type));
    }
    // By POSIX a folder may announce bytes, and other readers look for the next
    // header in them.
    if ((is_folder(header) || is_noted) && size != 0) {
      return tar_error(
          format(
              "'{}', which is not a file, has {} bytes of its own",
              escape(name),
              size),
          position_);
    }
    if (is_noted) {
      return note_special(std::move(name), header);
    }
    if (type == '5') {
      return {};
    }
    if (result_.names_.size() >= limits_.max_records) {
      return read_error(
          ErrorCode::kUnsafe,
          "E_LIMIT",
          format("more than {} members", limits_.max_records),
          "Limits::max_records allows more");
    }
    const auto part = slice_source(source_, position_ + kTarBlock, size);
    LOCKSTEP_TRY(take_name(name));
    result_.members_.emplace(name, part);
    result_.names_.push_back(std::move(name));
    return {};
  }

  Status note_special(std::string name, ByteSpan header) {
    LOCKSTEP_TRY(take_name(name));
    std::string target(tar_text(header, kTarLink));
    const std::size_t folder = name.rfind('/');
    const bool is_symbolic = static_cast<char>(header[kTarType]) == '2';
    if (is_symbolic && folder != std::string::npos) {
      target.insert(0, name, 0, folder + 1);
    }
    result_.specials_.push_back(
        {.name = std::move(name), .target = std::move(target)});
    return {};
  }

  Status take_name(const std::string& name) {
    return known_.insert(name).second
               ? Status()
               : Status(tar_error(
                     format("member '{}' appears twice", escape(name)),
                     position_));
  }

  [[nodiscard]] Status check_member(const std::string& name, char type) const {
    if (!is_plain_name(name)) {
      return tar_error(
          format("member name '{}' points outside the archive", escape(name)),
          position_);
    }
    const auto* refused = std::ranges::find(kRefused, type, &Refused::type);
    const bool is_file = type == '0' || type == '\0' || type == '5';
    if (is_file) {
      return {};
    }
    return tar_error(
        format(
            "member '{}' is {}; expected plain files",
            escape(name),
            refused == kRefused.end()
                ? format("of type '{}'", escape(std::string(1, type)))
                : std::string(refused->what)),
        position_);
  }

  // Lines "LENGTH KEY=VALUE\n" for the next member, or for all of them.
  Status read_extended(std::uint64_t size, bool is_global) {
    const std::uint64_t begin = position_ + kTarBlock;
    if (!extended_name_.empty() || extended_size_) {
      return tar_error("two extended headers for one member", position_);
    }
    if (size > kMaxTarHeader) {
      return tar_error(format("extended header of {} bytes", size), position_);
    }
    // Python reads records up to the end of the block.
    LOCKSTEP_ASSIGN(
        const ByteSpan bytes,
        source_->view(begin, padded(size), scratch_));
    if (!is_zero(bytes.subspan(size))) {
      return tar_error("bytes behind the records of an extended header", begin);
    }
    std::string_view rest = as_text(bytes.first(size));
    while (!rest.empty()) {
      std::size_t length = 0;
      const char* stop =
          std::from_chars(rest.data(), rest.data() + rest.size(), length).ptr;
      const auto digits = static_cast<std::size_t>(stop - rest.data());
      const std::string_view line = rest.substr(0, length);
      const std::size_t equals = line.find('=');
      if (digits == 0 || length > rest.size() || line.size() < digits + 2 ||
          line[digits] != ' ' || line.back() != '\n' ||
          equals == std::string_view::npos) {
        return tar_error("broken extended header", begin);
      }
      LOCKSTEP_TRY(take_record(
          line.substr(digits + 1, equals - digits - 1),
          line.substr(equals + 1, line.size() - equals - 2),
          is_global,
          begin));
      rest.remove_prefix(length);
    }
    return {};
  }

  Status take_record(
      std::string_view key,
      std::string_view value,
      bool is_global,
      std::uint64_t offset) {
    if (is_global && (key == "path" || key == "size")) {
      return tar_error(
          format("record '{}' for all members at once", escape(key)),
          offset);
    }
    if (key == "path") {
      // Python does not see the slashes.
      extended_name_ = value.substr(0, value.find_last_not_of('/') + 1);
    } else if (key == "size") {
      const auto size = parse_number<std::uint64_t>(value);
      if (!size) {
        return tar_error(
            format("size '{}' is not a number", escape(value)),
            offset);
      }
      extended_size_ = size;
    } else if (key.starts_with("GNU.sparse.") || key == "linkpath") {
      return tar_error(
          format("record '{}': expected plain files", escape(key)),
          offset);
    }
    return {};
  }

  // An empty block; archives are padded with more of them.
  Result<bool> read_end() {
    constexpr std::uint64_t kMaxPadding = 1U << 20;
    LOCKSTEP_ASSIGN(
        const ByteSpan rest,
        source_->view(position_, std::min(remaining(), kMaxPadding), scratch_));
    if (!is_zero(rest) || remaining() > kMaxPadding) {
      result_.warnings_.push_back(
          {.name = "W_TRAILING",
           .text = format(
               "{} the end of the archive at {:#x}",
               counted(remaining(), "byte follows", "bytes follow"),
               position_)});
    }
    return false;
  }

  std::shared_ptr<ByteSource> source_;
  Limits limits_;
  SpecialMembers special_;
  std::uint64_t position_ = 0;
  std::vector<std::byte> scratch_;
  std::string extended_name_;
  std::optional<std::uint64_t> extended_size_ = {};
  std::set<std::string> known_;
  TarMembers result_;
};

Result<TarMembers> TarMembers::open(
    const std::shared_ptr<ByteSource>& source,
    const Limits& limits,
    SpecialMembers special) {
  return TarParser(source, limits, special).run();
}

std::shared_ptr<ByteSource> TarMembers::find(std::string_view name) const {
  const auto found = members_.find(name);
  return found == members_.end() ? nullptr : found->second;
}

} // namespace lockstep::ckpt
