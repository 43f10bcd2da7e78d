// SPDX-License-Identifier: BSD-3-Clause
//
// Parts of images: the bits that they have in the whole, whatever a file's
// colours, order and turn are.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <jpeglib.h>

#include "lockstep/data/images.h"
#include "lockstep/data/internal/image_decoders.h"
#include "lockstep/data/internal/image_geometry.h"
#include "tests/data/idx_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using internal::Region;

constexpr std::int64_t kHeight = 203;
constexpr std::int64_t kWidth = 331;

// How a JPEG is written.
struct JpegKind {
  int horizontal = 1; // resolution of the first colour to that of the others
  int vertical = 1;
  int channels = 3;
  bool is_progressive = false;
  bool has_restarts = false;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's
void PrintTo(const JpegKind& kind, std::ostream* stream) {
  *stream << kind.horizontal << "x" << kind.vertical << " of " << kind.channels
          << (kind.is_progressive ? ", progressive" : "")
          << (kind.has_restarts ? ", restarts" : "");
}

// Waves and noise: neighbours differ, colours too.
std::vector<std::uint8_t>
noisy_row(std::mt19937& random, int channels, std::int64_t y) {
  std::vector<std::uint8_t> row;
  for (std::int64_t x = 0; x < kWidth; ++x) {
    for (int c = 0; c < channels; ++c) {
      const std::int64_t wave = (x * (c + 2) + y * (3 - c)) % 200;
      row.push_back(static_cast<std::uint8_t>(wave + random() % 55));
    }
  }
  return row;
}

std::string jpeg_of(const JpegKind& kind) {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0; // NOLINT(google-runtime-int): libjpeg's
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = kWidth;
  jpeg.image_height = kHeight;
  jpeg.input_components = kind.channels;
  jpeg.in_color_space = kind.channels == 1   ? JCS_GRAYSCALE
                        : kind.channels == 3 ? JCS_RGB
                                             : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 85, TRUE);
  jpeg.comp_info[0].h_samp_factor = kind.horizontal;
  jpeg.comp_info[0].v_samp_factor = kind.vertical;
  jpeg.restart_interval = kind.has_restarts ? 7 : 0;
  if (kind.is_progressive) {
    jpeg_simple_progression(&jpeg);
  }
  jpeg_start_compress(&jpeg, TRUE);
  std::mt19937 random(3);
  for (std::int64_t y = 0; y < kHeight; ++y) {
    auto row = noisy_row(random, kind.channels, y);
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&jpeg, &pointer, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string text(bytes, bytes + size);
  jpeg_destroy_compress(&jpeg);
  std::free(bytes); // NOLINT(cppcoreguidelines-no-malloc): libjpeg's
  return text;
}

Region random_region(std::mt19937& random, const ImageShape& whole) {
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random()) % bound;
  };
  Region region;
  region.height = 1 + below(whole.height);
  region.width = 1 + below(whole.width);
  region.top = below(whole.height - region.height + 1);
  region.left = below(whole.width - region.width + 1);
  return region;
}

// Regions at random, and those of one pixel in the corners.
void expect_equal_parts(
    const std::string& bytes,
    const DecodeOptions& options,
    int regions) {
  const Image whole = decode_image(as_byte_span(bytes), "x", options);
  EXPECT_EQ(
      internal::decoded_shape(as_byte_span(bytes), "x", options),
      whole.shape);
  std::mt19937 random(1);
  for (int i = 0; i < regions; ++i) {
    Region region = random_region(random, whole.shape);
    if (i < 4) {
      region = {
          .top = i < 2 ? 0 : whole.shape.height - 1,
          .left = i % 2 == 0 ? 0 : whole.shape.width - 1,
          .height = 1,
          .width = 1};
    }
    const Image part = internal::decode_part(
        as_byte_span(bytes),
        "x",
        options,
        [&](const ImageShape& shape) {
          EXPECT_EQ(shape.height, whole.shape.height);
          EXPECT_EQ(shape.width, whole.shape.width);
          return region;
        });
    const Image expected = internal::cropped(whole, region, 0);
    ASSERT_EQ(part.shape, expected.shape);
    ASSERT_TRUE(part.pixels == expected.pixels)
        << region.height << " x " << region.width << " at " << region.top
        << ", " << region.left;
  }
}

class JpegParts : public testing::TestWithParam<JpegKind> {};

TEST_P(JpegParts, HaveTheBitsOfTheWhole) {
  const std::string bytes = jpeg_of(GetParam());
  expect_equal_parts(bytes, {}, 120);
  expect_equal_parts(bytes, {.channels = 1}, 10);
  for (const std::int64_t min_side : {101, 51, 26, 1}) { // a half, a quarter
    expect_equal_parts(bytes, {.min_side = min_side}, 60);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    JpegParts,
    testing::Values(
        JpegKind{},
        JpegKind{.horizontal = 2},
        JpegKind{.vertical = 2},
        JpegKind{.horizontal = 2, .vertical = 2},
        JpegKind{.horizontal = 4},
        JpegKind{.horizontal = 4, .vertical = 2},
        JpegKind{.channels = 1},
        JpegKind{.channels = 4},
        JpegKind{.horizontal = 2, .vertical = 2, .has_restarts = true},
        JpegKind{.horizontal = 2, .vertical = 2, .is_progressive = true},
        JpegKind{.is_progressive = true, .has_restarts = true}));

// Of every kind of file that data_images.py writes: formats, interlaced rows,
// palettes, all turns of EXIF.
TEST(ImageParts, HaveTheBitsOfTheWholeInAllFormats) {
  const test::ScratchDir dir;
  const auto lines = test::python_lines("data_images.py", {dir.path()});
  EXPECT_GT(lines.size(), 40U);
  for (const std::string& line : lines) {
    const std::string name = line.substr(0, line.find(' '));
    SCOPED_TRACE(name);
    const std::string bytes =
        read_text(real_fs(), dir / ("files/" + name)).value();
    expect_equal_parts(bytes, {}, 20);
    expect_equal_parts(bytes, {.orient = false}, 10);
  }
}

// What is not there is not looked at; what is damaged within is told.
TEST(ImageParts, TellDamageInWhatTheyUse) {
  const std::string whole = jpeg_of({.horizontal = 2, .vertical = 2});
  const std::string cut = whole.substr(0, whole.size() / 2);
  const auto part = [&](std::int64_t top) {
    return internal::decode_part(
        as_byte_span(cut),
        "cut.jpg",
        {},
        [&](const ImageShape& shape) {
          return Region{.top = top, .height = 20, .width = shape.width};
        });
  };
  EXPECT_EQ(part(0).shape.height, 20);
  const auto error = test::error_if_any([&] { part(kHeight - 20); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->detail, "E_IMAGE");
  EXPECT_EQ(error->path, "cut.jpg");
}

// A byte that still inflates gives other pixels: the checksum tells.
TEST(ImageParts, TellAnyDamageOfPngPixels) {
  const test::ScratchDir dir;
  std::mt19937 random(2);
  Image image{.shape = {.channels = 3, .height = 60, .width = 50}};
  for (std::int64_t i = 0; i < image.shape.numel(); ++i) {
    image.pixels.push_back(static_cast<std::uint8_t>(random()));
  }
  write_png(dir / "a.png", image);
  const std::string whole = read_text(real_fs(), dir / "a.png").value();
  for (std::size_t at = 60; at + 20 < whole.size(); at += whole.size() / 40) {
    const std::string bytes = test::flip(whole, at, '\x01');
    const auto error = test::error_if_any([&] {
      internal::decode_part(
          as_byte_span(bytes),
          "a.png",
          {},
          [](const ImageShape&) { return Region{.height = 5, .width = 5}; });
    });
    ASSERT_TRUE(error) << at;
    EXPECT_EQ(error->detail, "E_IMAGE");
  }
}

} // namespace
} // namespace lockstep
