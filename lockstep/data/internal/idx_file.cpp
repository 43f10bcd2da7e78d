// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/idx_file.h"

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

constexpr std::uint64_t kMagicBytes = 4;
constexpr std::uint8_t kUnsignedByte = 0x08;

struct ForeignKind {
  std::uint32_t magic = 0;
  std::string_view name = {};
};

// First four bytes of files that people mistake for the dataset.
constexpr std::array kForeign{
    ForeignKind{0x89504E47, "a PNG image"},
    ForeignKind{0xFFD8FFE0, "a JPEG image"},
    ForeignKind{0x504B0304, "a zip archive"},
    ForeignKind{0xFD377A58, "an xz archive"},
    ForeignKind{0x28B52FFD, "a zstd archive"},
    ForeignKind{0x3C21444F, "an HTML page"},
    ForeignKind{0x3C68746D, "an HTML page"},
    ForeignKind{0x3C48544D, "an HTML page"},
    ForeignKind{0x1F8B0800, "a gzip stream inside a gzip stream"},
};

// Element types of the format that we do not read.
struct ElementType {
  std::uint8_t code = 0;
  std::string_view name = {};
};
constexpr std::array kOtherTypes{
    ElementType{0x09, "int8"},
    ElementType{0x0B, "int16"},
    ElementType{0x0C, "int32"},
    ElementType{0x0D, "float32"},
    ElementType{0x0E, "float64"},
};

std::uint32_t big_endian(const std::uint8_t* bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    value = value << 8 | bytes[i];
  }
  return value;
}

class Parser {
 public:
  Parser(const SharedBytes& file, const std::string& path)
      : file_(file), path_(path) {}

  [[nodiscard]] std::vector<std::int64_t> header(
      std::int64_t dimensions) const {
    need(kMagicBytes);
    check_magic(dimensions);
    const auto rank = static_cast<std::uint64_t>(dimensions);
    need(kMagicBytes + 4 * rank);
    std::vector<std::int64_t> sizes;
    sizes.reserve(rank);
    for (std::uint64_t i = 0; i < rank; ++i) {
      sizes.push_back(big_endian(file_.data.get() + kMagicBytes + 4 * i));
    }
    return sizes;
  }

  // The header must account for every byte of the file.
  void check_length(
      const std::vector<std::int64_t>& sizes,
      std::uint64_t data_offset) const {
    std::uint64_t elements = 1;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto size = static_cast<std::uint64_t>(sizes[i]);
      if (size != 0 &&
          elements > std::numeric_limits<std::uint64_t>::max() / 2 / size) {
        fail(
            ErrorCode::kCorrupt,
            "sizes in the header overflow",
            kMagicBytes + 4 * i);
      }
      elements *= size;
    }
    const std::uint64_t expected = data_offset + elements;
    if (file_.size != expected) {
      fail(
          ErrorCode::kCorrupt,
          format(
              "file does not fit its header; expected {} bytes, got {}",
              expected,
              file_.size),
          std::min(expected, file_.size));
    }
  }

 private:
  void need(std::uint64_t bytes) const {
    if (file_.size < bytes) {
      fail(
          ErrorCode::kCorrupt,
          format(
              "IDX header is cut; expected {} bytes or more, got {}",
              bytes,
              file_.size),
          file_.size);
    }
  }

  void check_magic(std::int64_t dimensions) const {
    const std::uint32_t magic = big_endian(file_.data.get());
    const std::uint32_t expected = std::uint32_t{kUnsignedByte} << 8 |
                                   static_cast<std::uint32_t>(dimensions);
    if (magic == expected) {
      return;
    }
    const auto type = static_cast<std::uint8_t>(magic >> 8 & 0xFF);
    for (const ElementType& other : kOtherTypes) {
      if (magic >> 16 == 0 && type == other.code) {
        fail(
            ErrorCode::kUnsupported,
            format("IDX file of {}; expected unsigned bytes", other.name),
            2);
      }
    }
    std::string what = format(
        "not the expected IDX file; expected magic {:#010x}, got {:#010x}",
        expected,
        magic);
    if (magic >> 8 == kUnsignedByte) {
      what += format(" ({} dimensions, not {})", magic & 0xFF, dimensions);
    }
    for (const ForeignKind& foreign : kForeign) {
      if (magic == foreign.magic) {
        what += format(" ({})", foreign.name);
      }
    }
    fail(ErrorCode::kCorrupt, std::move(what), 0);
  }

  [[noreturn]] void
  fail(ErrorCode code, std::string message, std::uint64_t offset) const {
    raise(
        {.code = code,
         .op = "data.read_idx",
         .message = std::move(message),
         .path = path_,
         .offset = offset,
         .detail = "E_DATA_FILE"});
  }

  const SharedBytes& file_;
  const std::string& path_;
};

} // namespace

IdxArray
parse_idx(SharedBytes file, std::int64_t dimensions, const std::string& path) {
  const Parser parser(file, path);
  IdxArray array;
  array.sizes = parser.header(dimensions);
  array.data_offset = kMagicBytes + 4 * array.sizes.size();
  parser.check_length(array.sizes, array.data_offset);
  array.elements = {
      .data = {file.data, file.data.get() + array.data_offset},
      .size = file.size - array.data_offset};
  return array;
}

IdxArray
read_idx(FileSystem& fs, const std::string& path, std::int64_t dimensions) {
  std::shared_ptr<FileMapping> mapping = fs.map(path).value();
  const ByteSpan bytes = mapping->bytes();
  if (is_gzip(bytes)) {
    return parse_idx(gunzip(bytes, path), dimensions, path);
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return parse_idx(
      {.data = {std::move(mapping), data}, .size = bytes.size()},
      dimensions,
      path);
}

} // namespace lockstep
