// SPDX-License-Identifier: BSD-3-Clause
//
// Storages that are not simply bytes in the file: deflated ones, and those of
// machines that write the large end first.
#include <gmock/gmock.h>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/deflate.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/zip/zip_fixture.h"

namespace lockstep::ckpt {
namespace {

Pickle tensor_of_type(const char* storage, std::int64_t numel) {
  Pickle pickle;
  pickle.global("torch._utils", "_rebuild_tensor_v2").mark();
  pickle.storage(storage, "0", numel).int4(0).ints({numel}).ints({1});
  return pickle.op(0x89).hooks().op('t').op('R').stop();
}

// Bytes of the file's only tensor, or the detail of the error.
std::string content_of(const ZipBytes& zip, const LoadOptions& options) {
  const std::string bytes = zip.finish();
  const auto file = load(make_source(as_byte_span(bytes)), "m.pt", options);
  if (!file) {
    return file.error().detail;
  }
  const auto content = file->root.as_tensor()->storage->source->load();
  return content ? std::string(
                       reinterpret_cast<const char*>(content->data()),
                       content->size())
                 : content.error().detail;
}

// `order`: the record `byteorder`; null for none.
ZipBytes
sixteen_letters(const char* storage, std::int64_t numel, const char* order) {
  ZipBytes zip;
  zip.add("a/data.pkl", tensor_of_type(storage, numel).bytes());
  if (order != nullptr) {
    zip.add("a/byteorder", order);
  }
  zip.add("a/data/0", "abcdefghijklmnop");
  zip.add("a/version", "3\n");
  return zip;
}

std::string big_endian(const char* storage, std::int64_t numel) {
  return content_of(sixteen_letters(storage, numel, "big"), {});
}

TEST(PtEncoding, InflatesRecords) {
  const std::string payload(64, 'x');
  const std::string packed = deflate(payload);
  ZipBytes zip;
  const std::string pickle = tensor_of_type("FloatStorage", 16).bytes();
  zip.add(
      "a/data.pkl",
      deflate(pickle),
      {.crc = crc32(as_byte_span(pickle)),
       .size = static_cast<std::uint32_t>(pickle.size()),
       .method = 8});
  zip.add(
      "a/data/0",
      packed,
      {.crc = crc32(as_byte_span(payload)), .size = 64, .method = 8});
  zip.add("a/version", "3\n");
  EXPECT_EQ(content_of(zip, {}), payload);
  EXPECT_EQ(content_of(zip, {.use_mmap = false}), payload);
}

TEST(PtEncoding, TurnsElementsOfBigEndianFiles) {
  EXPECT_EQ(big_endian("FloatStorage", 4), "dcbahgfelkjiponm");
  EXPECT_EQ(big_endian("LongStorage", 2), "hgfedcbaponmlkji");
  EXPECT_EQ(big_endian("HalfStorage", 8), "badcfehgjilknmpo");
  EXPECT_EQ(big_endian("ByteStorage", 16), "abcdefghijklmnop");
  // A complex number is two numbers.
  EXPECT_EQ(big_endian("ComplexFloatStorage", 2), "dcbahgfelkjiponm");
  EXPECT_EQ(big_endian("ComplexDoubleStorage", 1), "hgfedcbaponmlkji");
  EXPECT_EQ(big_endian("QInt32Storage", 4), "dcbahgfelkjiponm");
}

TEST(PtEncoding, TakesTheByteOrderFromTheCallerIfTheFileIsSilent) {
  const ZipBytes zip = sixteen_letters("FloatStorage", 4, nullptr);
  EXPECT_EQ(content_of(zip, {}), "abcdefghijklmnop");
  for (const bool use_mmap : {true, false}) {
    EXPECT_EQ(
        content_of(zip, {.use_mmap = use_mmap, .byteorder = std::endian::big}),
        "dcbahgfelkjiponm");
  }
  EXPECT_EQ(
      content_of(zip, {.byteorder = std::endian::little}),
      "abcdefghijklmnop");
}

TEST(PtEncoding, TakesTheFilesWordBeforeTheCallers) {
  const std::string bytes =
      sixteen_letters("FloatStorage", 4, "little").finish();
  const auto source = make_source(as_byte_span(bytes));
  const auto file = load(source, "m.pt", {.byteorder = std::endian::big});
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_EQ(file->byteorder, "little");
  EXPECT_THAT(
      file->warnings,
      testing::ElementsAre(testing::Field(&Warning::name, "W_BYTEORDER")));
  const auto strict =
      load(source, "m.pt", {.byteorder = std::endian::big, .strict = true});
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().detail, "W_BYTEORDER");
  const auto agreed =
      load(source, "m.pt", {.byteorder = std::endian::little, .strict = true});
  EXPECT_TRUE(agreed) << to_string(agreed.error());
}

} // namespace
} // namespace lockstep::ckpt
