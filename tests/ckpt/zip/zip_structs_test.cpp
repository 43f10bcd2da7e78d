// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_structs.h"

#include <gmock/gmock.h>

namespace lockstep::ckpt {
namespace {

using std::string_literals::operator""s;

// As in the standard of the format.
static_assert(kStructBytes<LocalHeader> == 30);
static_assert(kStructBytes<DataDescriptor> == 16);
static_assert(kStructBytes<DataDescriptor64> == 24);
static_assert(kStructBytes<CentralHeader> == 46);
static_assert(kStructBytes<End64Record> == 56);
static_assert(kStructBytes<End64Locator> == 20);
static_assert(kStructBytes<EndRecord> == 22);

constexpr LocalHeader kHeader{
    .flags = kUtf8Flag,
    .method = kDeflated,
    .crc = 0x01020304,
    .compressed_size = 5,
    .size = 6,
    .name_bytes = 2};

std::shared_ptr<ByteSource> source_of(const std::string& bytes) {
  return make_source(as_byte_span(bytes));
}

std::string wide_sizes(std::uint64_t size, std::uint64_t compressed_size) {
  std::string field;
  append_le(field, kZip64Tag);
  append_le(field, std::uint16_t{16});
  append_le(field, size);
  append_le(field, compressed_size);
  return field;
}

TEST(ZipStructs, ThePlaceOfEachFieldIsThatOfTheFormat) {
  EXPECT_EQ(
      to_bytes(kHeader),
      "PK\3\4\0\0\0\x08\x08\0\0\0\0\0\4\3\2\1\5\0\0\0\6\0\0\0\2\0\0\0"s);
  EXPECT_EQ(
      to_bytes(
          EndRecord{.count = 1, .directory_offset = 2, .comment_bytes = 3}),
      "PK\5\6\0\0\0\0\0\0\1\0\0\0\0\0\2\0\0\0\3\0"s);
}

TEST(ZipStructs, WhatIsWrittenReadsBack) {
  const std::string bytes = to_bytes(kHeader) + "more";
  const auto header = read_struct<LocalHeader>(as_byte_span(bytes));
  ASSERT_TRUE(header);
  EXPECT_EQ(LocalHeader::fields(*header), LocalHeader::fields(kHeader));
}

TEST(ZipStructs, NothingIsReadFromTooFewBytesOrAnotherMagic) {
  std::string bytes = to_bytes(kHeader);
  EXPECT_FALSE(read_struct<CentralHeader>(as_byte_span(bytes + bytes)));
  bytes.pop_back();
  EXPECT_FALSE(read_struct<LocalHeader>(as_byte_span(bytes)));
}

TEST(ZipMagic, CountsTheBytesThatAreRight) {
  const auto prefix = [](std::string_view text) {
    return zip_magic_prefix(as_byte_span(text));
  };
  EXPECT_EQ(prefix(""), 0U);
  EXPECT_EQ(prefix("P"), 1U);
  EXPECT_EQ(prefix("PK\5\6"), 2U);
  EXPECT_EQ(prefix("PK\3\4PK"), 4U);
  EXPECT_FALSE(starts_like_zip(as_byte_span("PK\3")));
  EXPECT_TRUE(starts_like_zip(as_byte_span("PK\3\4")));
}

TEST(ZipMagic, AnEndRecordIsTheLastThing) {
  const std::string end = to_bytes(EndRecord());
  EXPECT_TRUE(ends_like_zip(*source_of("text" + end)).value());
  EXPECT_FALSE(ends_like_zip(*source_of(end + "text")).value());
  EXPECT_FALSE(ends_like_zip(*source_of("PK")).value());
}

TEST(ZipExtraField, IsFoundBehindOthersUnlessOneIsCut) {
  const std::string sizes = wide_sizes(1, 2);
  const auto find = [](const std::string& fields) {
    return find_extra_field(as_byte_span(fields), kZip64Tag);
  };
  const std::string fields = "FB\1\0Z"s + sizes;
  const auto found = find(fields);
  ASSERT_TRUE(found);
  EXPECT_EQ(as_text(*found), sizes.substr(4));
  EXPECT_FALSE(find("FB\1\0Z"s));
  EXPECT_FALSE(find("FB\xff\0Z"s + sizes));
  EXPECT_FALSE(find(sizes.substr(0, sizes.size() - 1)));
}

TEST(ZipLocalRecord, HasNameSizesAndTheStartOfThePayload) {
  const std::string bytes = "front" + to_bytes(kHeader) + "ab" + "payload";
  const auto record = read_local_record(*source_of(bytes), 5).value();
  ASSERT_TRUE(record);
  EXPECT_EQ(record->name, "ab");
  EXPECT_EQ(record->compressed_size, 5U);
  EXPECT_EQ(record->size, 6U);
  EXPECT_EQ(record->data_offset, 37U);
  EXPECT_FALSE(record->has_descriptor());
}

TEST(ZipLocalRecord, TakesWideSizesOnlyWhereTheHeaderRefersToThem) {
  const std::string extra = wide_sizes(1ULL << 40, 1ULL << 41);
  const auto read = [&extra](std::uint32_t size, std::uint32_t compressed) {
    LocalHeader header = kHeader;
    header.size = size;
    header.compressed_size = compressed;
    header.extra_bytes = static_cast<std::uint16_t>(extra.size());
    const std::string bytes = to_bytes(header) + "ab" + extra;
    return read_local_record(*source_of(bytes), 0).value().value();
  };
  EXPECT_EQ(read(kZip64Threshold, kZip64Threshold).size, 1ULL << 40);
  EXPECT_EQ(read(kZip64Threshold, kZip64Threshold).compressed_size, 1ULL << 41);
  EXPECT_EQ(read(7, 5).size, 7U);
  EXPECT_EQ(read(7, 5).compressed_size, 5U);
  // The field holds those alone that the header does not.
  EXPECT_EQ(read(kZip64Threshold, 5).size, 1ULL << 40);
  EXPECT_EQ(read(kZip64Threshold, 5).compressed_size, 5U);
  EXPECT_EQ(read(7, kZip64Threshold).size, 7U);
  EXPECT_EQ(read(7, kZip64Threshold).compressed_size, 1ULL << 40);
}

TEST(ZipLocalRecord, IsNoneIfItIsCutOrNotThere) {
  const std::string bytes = to_bytes(kHeader) + "ab";
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(read_local_record(*source_of(bytes.substr(0, cut)), 0).value())
        << cut;
  }
  EXPECT_FALSE(read_local_record(*source_of(bytes), 1).value());
  EXPECT_FALSE(read_local_record(*source_of(bytes), bytes.size() + 1).value());
  LocalHeader long_name = kHeader;
  long_name.name_bytes = kMaxNameBytes + 1;
  const std::string long_bytes =
      to_bytes(long_name) + std::string(long_name.name_bytes, 'a');
  EXPECT_FALSE(read_local_record(*source_of(long_bytes), 0).value());
}

} // namespace
} // namespace lockstep::ckpt
