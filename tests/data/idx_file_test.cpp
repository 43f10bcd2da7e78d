// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/internal/idx_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/idx_fixture.h"

namespace lockstep {
namespace {

using test::error_if_any;
using test::flip;
using test::idx;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

SharedBytes shared(const std::string& bytes) {
  auto copy = std::make_shared<std::string>(bytes);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): test bytes
  const auto* data = reinterpret_cast<const std::uint8_t*>(copy->data());
  return {.data = {copy, data}, .size = copy->size()};
}

IdxArray parse(const std::string& bytes, std::int64_t dimensions = 1) {
  return parse_idx(shared(bytes), dimensions, "file.idx");
}

Error parse_error(const std::string& bytes, std::int64_t dimensions = 1) {
  const auto error = error_if_any([&] { parse(bytes, dimensions); });
  EXPECT_TRUE(error);
  return error.value_or(Error{});
}

TEST(IdxFile, ParsesSizesAndElements) {
  const IdxArray array = parse(idx({2, 3, 1}, "abcdef"), 3);
  EXPECT_THAT(array.sizes, ElementsAre(2, 3, 1));
  EXPECT_EQ(array.data_offset, 16);
  ASSERT_EQ(array.elements.size, 6);
  EXPECT_EQ(array.elements.data.get()[5], 'f');
}

TEST(IdxFile, ReadsPlainAndPackedAlike) {
  const test::IdxFolder folder;
  folder.write("plain", idx({3}, "abc"));
  folder.write("packed", test::gzip(idx({3}, "abc")));
  for (const char* name : {"plain", "packed"}) {
    const IdxArray array = read_idx(real_fs(), folder.path() + "/" + name, 1);
    ASSERT_EQ(array.elements.size, 3) << name;
    EXPECT_EQ(array.elements.data.get()[2], 'c') << name;
  }
}

TEST(IdxFile, CutFileNamesBothLengths) {
  const std::string whole = idx({4}, "abcd");
  const Error error = parse_error(whole.substr(0, 10));
  EXPECT_EQ(
      to_string(error),
      "[data.read_idx] file does not fit its header; expected 12 bytes, got 10 "
      "(file.idx, offset 0xa).");
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
}

TEST(IdxFile, EveryCutIsAnError) {
  const std::string whole = idx({2, 2, 2}, "abcdefgh");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Error error = parse_error(whole.substr(0, size), 3);
    EXPECT_EQ(error.code, ErrorCode::kCorrupt) << size;
    EXPECT_EQ(error.offset, size);
  }
}

TEST(IdxFile, TooLongFileIsAnError) {
  const Error error = parse_error(idx({4}, "abcde"));
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_EQ(error.offset, 12);
}

TEST(IdxFile, WrongMagicShowsBothValues) {
  const Error error = parse_error(idx({1, 1, 1}, "a"), 1);
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_EQ(error.offset, 0);
  EXPECT_THAT(
      error.message,
      HasSubstr("expected magic 0x00000801, got 0x00000803 (3 dimensions, not "
                "1)"));
}

TEST(IdxFile, ForeignFilesAreNamed) {
  using namespace std::string_literals;
  EXPECT_THAT(
      parse_error("\x89PNG\r\n\x1a\n........"s, 3).message,
      HasSubstr("got 0x89504e47 (a PNG image)"));
  EXPECT_THAT(
      parse_error("PK\x03\x04............"s).message,
      HasSubstr("(a zip archive)"));
  EXPECT_THAT(
      parse_error("<!DOCTYPE html>......."s).message,
      HasSubstr("(an HTML page)"));
  EXPECT_EQ(parse_error("hello, world").code, ErrorCode::kCorrupt);
}

TEST(IdxFile, OtherElementTypesAreUnsupported) {
  std::string bytes = idx({1}, "abcd");
  bytes[2] = '\x0D';
  const Error error = parse_error(bytes);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("float32"));
}

TEST(IdxFile, HugeSizesDoNotOverflow) {
  const std::uint32_t big = 0xFFFFFFFF;
  const Error error = parse_error(idx({big, big, big}, "a"), 3);
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_THAT(error.message, HasSubstr("overflow"));
  // 2^16 * 2^16 * 2^32 is 2^64: it would wrap to nothing.
  const Error wraps = parse_error(idx({0x10000, 0x10000, 0x80000000}, ""), 3);
  EXPECT_EQ(wraps.code, ErrorCode::kCorrupt);
}

// Any one bit of the header: an error, never wrong data.
TEST(IdxFile, FlippedHeaderBitsAreErrors) {
  const std::string whole = idx({2, 3, 4}, std::string(24, 'x'));
  for (std::size_t bit = 0; bit < 16 * 8; ++bit) {
    const std::string bad =
        flip(whole, bit / 8, static_cast<char>(1 << bit % 8));
    const Error error = parse_error(bad, 3);
    EXPECT_TRUE(
        error.code == ErrorCode::kCorrupt ||
        error.code == ErrorCode::kUnsupported)
        << bit;
    EXPECT_EQ(error.path, "file.idx");
    EXPECT_TRUE(error.offset.has_value());
  }
}

TEST(IdxFile, MissingFileIsNotFound) {
  const auto error =
      error_if_any([] { read_idx(real_fs(), "/nonexistent/x.idx", 1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kNotFound);
  EXPECT_EQ(error->path, "/nonexistent/x.idx");
}

} // namespace
} // namespace lockstep
