// SPDX-License-Identifier: BSD-3-Clause
//
// Pixels of image files against Pillow's, and what is refused.
#include <filesystem>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <libdeflate.h>

#include "lockstep/base/fs.h"
#include "lockstep/data/images.h"
#include "tests/data/idx_fixture.h"
#include "tests/support/python.h"
#include "tests/support/scratch_dir.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

std::string text_of(const std::string& path) {
  return read_text(real_fs(), path).value();
}

std::string pixels_of(const Image& image) {
  return {image.pixels.begin(), image.pixels.end()};
}

// The folder that data_images.py fills, and what it printed.
class ImageFiles : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_folder = std::make_unique<test::ScratchDir>();
    printed = test::python_lines("data_images.py", {shared_folder->path()});
  }
  static void TearDownTestSuite() {
    shared_folder.reset();
  }
  static std::string file(const std::string& name) {
    return shared_folder->path() + "/files/" + name;
  }
  static inline std::unique_ptr<test::ScratchDir> shared_folder;
  static inline std::vector<std::string> printed;
};

TEST_F(ImageFiles, HavePillowsPixels) {
  EXPECT_GT(printed.size(), 40U);
  for (const std::string& line : printed) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string name;
    ImageShape shape;
    words >> name >> shape.height >> shape.width;
    for (const auto& [channels, ending] :
         {std::pair{3, ".rgb"}, std::pair{1, ".l"}}) {
      const Image image = read_image(file(name), {.channels = channels});
      shape.channels = channels;
      EXPECT_EQ(image.shape, shape);
      EXPECT_TRUE(
          pixels_of(image) ==
          text_of(shared_folder->path() + "/pixels/" + name + ending))
          << channels;
    }
  }
}

TEST_F(ImageFiles, StayAsTheyAreIfAsked) {
  const Image upright = read_image(file("turned1.png"));
  const Image turned = read_image(file("turned6.png"), {.orient = false});
  EXPECT_EQ(turned.shape, upright.shape);
  EXPECT_TRUE(turned.pixels == upright.pixels);
  EXPECT_NE(read_image(file("turned6.png")).shape, upright.shape);
}

TEST_F(ImageFiles, AreDecodedSmallerWhereThatSuffices) {
  // 37 x 51 pixels
  for (const auto& [min_side, height] :
       {std::pair{38, 37},
        std::pair{19, 19},
        std::pair{10, 10},
        std::pair{5, 5},
        std::pair{1, 5}}) {
    const Image image = read_image(file("best.jpg"), {.min_side = min_side});
    EXPECT_EQ(image.shape.height, height) << min_side;
  }
  EXPECT_EQ(read_image(file("RGB.png"), {.min_side = 5}).shape.height, 37);
}

TEST_F(ImageFiles, ThatAreCutAreDamaged) {
  for (const std::string name :
       {"sampled0.jpg",
        "progressive.jpg",
        "RGB.png",
        "P.png",
        "losslessTrue.webp",
        "losslessFalse.webp"}) {
    const std::string whole = text_of(file(name));
    for (std::size_t size = 0; size < whole.size(); size += 1 + size / 7) {
      const auto error = test::error_if_any([&] {
        decode_image(as_byte_span(whole).first(size), "cut/" + name);
      });
      ASSERT_TRUE(error) << name << " " << size;
      EXPECT_EQ(error->path, "cut/" + name);
      EXPECT_THAT(error->detail, testing::AnyOf("E_IMAGE", "E_IMAGE_FORMAT"));
    }
  }
}

TEST_F(ImageFiles, WithOtherBytesNeverDoHarm) {
  for (const std::string& line : printed) {
    const std::string name = line.substr(0, line.find(' '));
    const std::string whole = text_of(file(name));
    for (std::size_t at = 0; at < whole.size(); at += 1 + at / 5) {
      const std::string bytes = test::flip(whole, at, '\x55');
      test::error_if_any([&] {
        const Image image = decode_image(as_byte_span(bytes), name);
        EXPECT_EQ(std::ssize(image.pixels), image.shape.numel());
      });
    }
  }
}

// The state of libjpeg is that of one file.
TEST_F(ImageFiles, ThatAreSoundAreReadAfterDamagedOnes) {
  const std::string whole = text_of(file("best.jpg"));
  const std::string frame("\xff\xc0", 2);
  std::string lossless = whole;
  lossless.replace(lossless.find(frame), 2, "\xff\xc3");
  EXPECT_TRUE(test::error_if_any(
      [&] { decode_image(as_byte_span(lossless), "lossless.jpg"); }));
  EXPECT_EQ(decode_image(as_byte_span(whole), "best.jpg").shape.height, 37);
}

// libjpeg goes on with grey where a marker ends the data early.
TEST_F(ImageFiles, WithPixelsThatAreMadeUpAreDamaged) {
  const std::string whole = text_of(file("best.jpg"));
  int refused = 0;
  for (std::size_t at = whole.size() / 2; at < whole.size() - 2; at += 7) {
    std::string bytes = whole;
    bytes[at] = '\xff';
    const auto error = test::error_if_any([&] {
      const Image image = decode_image(as_byte_span(bytes), "best.jpg");
      // A byte that means other pixels cannot be told.
      const auto row = static_cast<std::size_t>(3 * 51);
      const std::vector<std::uint8_t> last(
          image.pixels.end() - row,
          image.pixels.end());
      EXPECT_NE(last, std::vector<std::uint8_t>(row, 128)) << at;
    });
    refused += error ? 1 : 0;
  }
  EXPECT_GT(refused, 10);
}

// Cameras and editors leave bytes between markers.
TEST_F(ImageFiles, WithBytesBetweenMarkersAreSound) {
  std::string bytes = text_of(file("best.jpg"));
  const std::size_t tables = bytes.find("\xff\xdb");
  bytes.insert(tables, "ab");
  EXPECT_EQ(decode_image(as_byte_span(bytes), "best.jpg").shape.height, 37);
  bytes.insert(tables + 2, "\xff\xff"); // fill bytes
  EXPECT_EQ(decode_image(as_byte_span(bytes), "best.jpg").shape.height, 37);
}

TEST(ImageFile, OfAnotherFormatIsNamed) {
  for (const std::string bytes : {"", "GIF89a", "RIFF....WAVE", "\xff\xd8"}) {
    const auto error =
        test::error_if_any([&] { decode_image(as_byte_span(bytes), "a.jpg"); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::kUnsupported);
    EXPECT_EQ(error->detail, "E_IMAGE_FORMAT");
    EXPECT_THAT(error->hint, HasSubstr("JPEG, PNG or WebP"));
  }
}

TEST_F(ImageFiles, WithTooManyPixelsAreRefusedBeforeMemoryIsTaken) {
  std::string bytes = text_of(file("RGB.png"));
  bytes.replace(16, 8, std::string("\0\0\x7f\xff\0\0\x7f\xff", 8));
  const std::uint32_t sum = libdeflate_crc32(0, &bytes[12], 17);
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[29 + i] = static_cast<char>(sum >> (24 - 8 * i));
  }
  const auto error = test::error_if_any(
      [&] { decode_image(as_byte_span(bytes), "bomb.png"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->detail, "E_IMAGE_PIXELS");
  EXPECT_EQ(error->code, ErrorCode::kUnsafe);
  EXPECT_THAT(error->message, HasSubstr("32767 x 32767"));
}

TEST(ImageFile, WithTwoChannelsIsNotMade) {
  const auto error =
      test::error_if_any([] { decode_image({}, "a.png", {.channels = 2}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kInvalidArgument);
}

TEST(ImageFile, IsKnownByItsEnding) {
  for (const char* name : {"a.jpg", "a.JPEG", "b/c.png", "x.y.WebP"}) {
    EXPECT_TRUE(has_image_ending(name)) << name;
  }
  for (const char* name : {".jpg", "jpg", "a.gif", "a.png.txt", ""}) {
    EXPECT_FALSE(has_image_ending(name)) << name;
  }
}

} // namespace
} // namespace lockstep
