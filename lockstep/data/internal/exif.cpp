// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lockstep/data/internal/image_decoders.h"

namespace lockstep::internal {
namespace {

// Numbers of a file; 0 beyond its end.
struct Reader {
  std::string_view bytes = {};
  bool is_little = false;

  [[nodiscard]] std::size_t number(std::size_t at, std::size_t count) const {
    std::size_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = is_little ? at + count - 1 - i : at + i;
      const std::size_t byte =
          place < bytes.size() ? static_cast<unsigned char>(bytes[place]) : 0U;
      value = value << 8 | byte;
    }
    return value;
  }
};

// Of a TIFF structure: byte order, then where the first directory is.
int orientation_in(std::string_view tiff) {
  constexpr std::size_t kEntryBytes = 12;
  constexpr std::size_t kOrientation = 0x0112;
  constexpr std::size_t kShort = 3;
  const Reader reader{.bytes = tiff, .is_little = tiff.starts_with("II")};
  const std::size_t directory = reader.number(4, 4);
  if (reader.number(2, 2) != 42 || directory >= tiff.size()) {
    return kNotTurned;
  }
  const std::size_t entries = reader.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + i * kEntryBytes;
    if (at >= tiff.size()) {
      break;
    }
    if (reader.number(at, 2) == kOrientation &&
        reader.number(at + 2, 2) == kShort) {
      const std::size_t value = reader.number(at + 8, 2);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : kNotTurned;
    }
  }
  return kNotTurned;
}

// The TIFF structure behind JPEG's and some WebP's "Exif\0\0".
std::string_view without_mark(std::string_view exif) {
  using namespace std::string_view_literals;
  constexpr std::string_view kMark = "Exif\0\0"sv;
  return exif.starts_with(kMark) ? exif.substr(kMark.size()) : exif;
}

std::string_view exif_of_jpeg(std::string_view file) {
  constexpr std::size_t kApp1 = 0xe1;
  constexpr std::size_t kStartOfScan = 0xda;
  const Reader reader{.bytes = file};
  std::size_t at = 2;
  while (at + 4 <= file.size() && reader.number(at, 1) == 0xff) {
    const std::size_t marker = reader.number(at + 1, 1);
    if (marker == 0xff) { // fills up
      ++at;
      continue;
    }
    const std::size_t length = reader.number(at + 2, 2);
    if (marker == kStartOfScan || length < 2) {
      break;
    }
    if (marker == kApp1 && file.substr(at + 4).starts_with("Exif")) {
      return file.substr(at + 4, length - 2);
    }
    at += 2 + length;
  }
  return {};
}

// Chunks of length, name and data; PNG has a checksum behind them, RIFF an even
// length.
std::string_view exif_of_png(std::string_view file) {
  const Reader reader{.bytes = file};
  for (std::size_t at = 8; at + 8 <= file.size();) {
    const std::size_t length = reader.number(at, 4);
    if (file.substr(at + 4).starts_with("eXIf")) {
      return file.substr(at + 8, length);
    }
    at += 12 + length;
  }
  return {};
}

std::string_view exif_of_webp(std::string_view file) {
  const Reader reader{.bytes = file, .is_little = true};
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const std::size_t length = reader.number(at + 4, 4);
    if (file.substr(at).starts_with("EXIF")) {
      return file.substr(at + 8, length);
    }
    at += 8 + length + length % 2;
  }
  return {};
}

} // namespace

int exif_orientation(ByteSpan file) {
  const std::string_view text = as_text(file);
  const std::string_view exif = text.starts_with("\xff\xd8")
                                    ? exif_of_jpeg(text)
                                : text.starts_with("RIFF") ? exif_of_webp(text)
                                                           : exif_of_png(text);
  return orientation_in(without_mark(exif));
}

} // namespace lockstep::internal
