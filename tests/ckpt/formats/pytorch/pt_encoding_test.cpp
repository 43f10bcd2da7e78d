// SPDX-License-Identifier: BSD-3-Clause
//
// Storages that are not simply bytes in the file: deflated ones, and those of
// machines that write the large end first.
#include <gmock/gmock.h>
#include <libdeflate.h>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/zip/zip_fixture.h"

namespace lockstep::ckpt {
namespace {

std::string deflated(const std::string& text) {
  std::string out(1024, '\0');
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(6);
  out.resize(libdeflate_deflate_compress(
      compressor,
      text.data(),
      text.size(),
      out.data(),
      out.size()));
  libdeflate_free_compressor(compressor);
  return out;
}

Pickle tensor_of_type(const char* storage, std::int64_t numel) {
  Pickle pickle;
  pickle.global("torch._utils", "_rebuild_tensor_v2").mark();
  pickle.storage(storage, "0", numel).int4(0).ints({numel}).ints({1});
  return pickle.op(0x89).hooks().op('t').op('R').stop();
}

// Bytes of the file's only tensor, or the detail of the error.
std::string content_of(const ZipBytes& zip, bool is_mapped) {
  const std::string bytes = zip.finish();
  const auto file =
      load(make_source(as_byte_span(bytes)), "m.pt", {.use_mmap = is_mapped});
  if (!file) {
    return file.error().detail;
  }
  const auto content = file->root.as_tensor()->storage->source->load();
  return content ? std::string(
                       reinterpret_cast<const char*>(content->data()),
                       content->size())
                 : content.error().detail;
}

std::string big_endian(const char* storage, std::int64_t numel) {
  ZipBytes zip;
  zip.add("a/data.pkl", tensor_of_type(storage, numel).bytes());
  zip.add("a/byteorder", "big");
  zip.add("a/data/0", "abcdefghijklmnop");
  zip.add("a/version", "3\n");
  return content_of(zip, true);
}

TEST(PtEncoding, InflatesRecords) {
  const std::string payload(64, 'x');
  const std::string packed = deflated(payload);
  ZipBytes zip;
  const std::string pickle = tensor_of_type("FloatStorage", 16).bytes();
  zip.add(
      "a/data.pkl",
      deflated(pickle),
      {.crc = crc32(as_byte_span(pickle)),
       .size = static_cast<std::uint32_t>(pickle.size()),
       .method = 8});
  zip.add(
      "a/data/0",
      packed,
      {.crc = crc32(as_byte_span(payload)), .size = 64, .method = 8});
  zip.add("a/version", "3\n");
  EXPECT_EQ(content_of(zip, true), payload);
  EXPECT_EQ(content_of(zip, false), payload);
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

} // namespace
} // namespace lockstep::ckpt
