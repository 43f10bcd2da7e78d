// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/ckpt/zip/zip_reader.h"

#include <fstream>

#include <gmock/gmock.h>

#include "lockstep/ckpt/zip/zip_structs.h"
#include "tests/ckpt/deflate.h"
#include "tests/ckpt/zip/zip_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

Result<ZipReader> open_bytes(const std::string& bytes) {
  return ZipReader::open(make_source(as_byte_span(bytes)));
}

// Detail of the error, or "" if the bytes are accepted.
std::string detail_of(const std::string& bytes) {
  const auto reader = open_bytes(bytes);
  return reader ? "" : reader.error().detail;
}

std::string with_lies(const EntryLies& lies) {
  ZipBytes zip;
  zip.add("a/data.pkl", "payload", lies);
  zip.add("a/version", "3\n");
  return zip.finish();
}

std::string sound_zip() {
  return with_lies({});
}

std::string named(const std::string& first, const std::string& second) {
  ZipBytes zip;
  zip.add(first, "1");
  zip.add(second, "2");
  return zip.finish();
}

std::string text_of(ByteSpan bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text.push_back(static_cast<char>(byte));
  }
  return text;
}

TEST(ZipReader, ReadsRecordsBelowTheRoot) {
  const std::string bytes = sound_zip();
  const auto zip = open_bytes(bytes);
  ASSERT_TRUE(zip) << to_string(zip.error());
  EXPECT_EQ(zip->root(), "a");
  ASSERT_EQ(zip->records().size(), 2U);
  const ZipRecord* record = zip->find("data.pkl");
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(zip->find("DATA.PKL"), nullptr);
  std::vector<std::byte> scratch;
  const auto content = zip->read(*record, scratch);
  ASSERT_TRUE(content);
  EXPECT_EQ(text_of(*content), "payload");
  EXPECT_TRUE(scratch.empty());
  EXPECT_TRUE(zip->check_crc(*record));
  EXPECT_EQ(zip->crc_state(), CrcState::kPresent);
  EXPECT_TRUE(zip->warnings().empty());
}

TEST(ZipReader, InflatesDeflatedRecords) {
  const std::string text(1000, 'w');
  const std::string packed = deflate(text);
  ZipBytes zip_bytes;
  zip_bytes.add(
      "a/code",
      packed,
      {.crc = crc32(as_byte_span(text)), .size = 1000, .method = 8});
  const std::string bytes = zip_bytes.finish();
  const auto zip = open_bytes(bytes);
  ASSERT_TRUE(zip) << to_string(zip.error());
  std::vector<std::byte> scratch;
  const auto content = zip->read(*zip->find("code"), scratch);
  ASSERT_TRUE(content);
  EXPECT_EQ(text_of(*content), text);
  EXPECT_TRUE(zip->check_crc(*zip->find("code")));
}

TEST(ZipReader, NamesDamagedDeflateData) {
  std::string packed = deflate(std::string(1000, 'w'));
  packed[0] = static_cast<char>(packed[0] ^ 0x06);
  const std::string bytes = [&] {
    ZipBytes zip;
    zip.add("a/code", packed, {.size = 1000, .method = 8});
    return zip.finish();
  }();
  const auto zip = open_bytes(bytes);
  ASSERT_TRUE(zip);
  std::vector<std::byte> scratch;
  const auto content = zip->read(*zip->find("code"), scratch);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().detail, "E_DEFLATE");
}

TEST(ZipReader, FindsAFlippedByte) {
  std::string bytes = sound_zip();
  bytes[bytes.find("payload")] ^= 1;
  const auto zip = open_bytes(bytes);
  ASSERT_TRUE(zip);
  const Status status = zip->check_crc(*zip->find("data.pkl"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_CRC");
  EXPECT_EQ(status.error().record, "data.pkl");
}

TEST(ZipReader, WarnsWhenNoCrcIsStored) {
  ZipBytes zip_bytes;
  zip_bytes.add("a/data.pkl", "payload", {.crc = 0});
  const std::string bytes = zip_bytes.finish();
  const auto zip = open_bytes(bytes);
  ASSERT_TRUE(zip);
  EXPECT_EQ(zip->crc_state(), CrcState::kAbsent);
  EXPECT_TRUE(zip->check_crc(*zip->find("data.pkl")));
  ASSERT_EQ(zip->warnings().size(), 1U);
  EXPECT_EQ(zip->warnings()[0].name, "W_CRC_ABSENT");
}

TEST(ZipReader, WarnsWhenOnlyDataHasNoCrc) {
  ZipBytes zip_bytes;
  zip_bytes.add("a/data.pkl", "payload");
  zip_bytes.add("a/data/0", "weights", {.crc = 0});
  const std::string bytes = zip_bytes.finish();
  const auto zip = open_bytes(bytes);
  ASSERT_TRUE(zip);
  EXPECT_EQ(zip->crc_state(), CrcState::kAbsentInData);
  EXPECT_TRUE(zip->has_crc(*zip->find("data.pkl")));
  EXPECT_FALSE(zip->has_crc(*zip->find("data/0")));
}

TEST(ZipReader, AcceptsTrailingBytesWithAWarning) {
  const std::string bytes = sound_zip() + std::string(40, 'x');
  const auto zip = open_bytes(bytes);
  ASSERT_TRUE(zip) << to_string(zip.error());
  ASSERT_EQ(zip->warnings().size(), 1U);
  EXPECT_EQ(zip->warnings()[0].name, "W_TRAILING");
  EXPECT_THAT(zip->warnings()[0].text, HasSubstr("40 foreign bytes"));
}

TEST(ZipReader, RejectsEmptyAndCutFiles) {
  const std::string whole = sound_zip();
  EXPECT_EQ(detail_of(""), "E_EMPTY");
  EXPECT_EQ(detail_of("PK\3"), "E_TRUNCATED");
  EXPECT_EQ(detail_of(whole.substr(0, whole.size() - 1)), "E_ZIP_NO_EOCD");
  EXPECT_EQ(detail_of(whole.substr(0, whole.size() / 2)), "E_ZIP_NO_EOCD");
  EXPECT_EQ(detail_of("MZ" + whole), "E_PREFIX");
}

TEST(ZipReader, RejectsBytesHiddenBeforeTheArchive) {
  const std::string whole = sound_zip();
  EXPECT_EQ(detail_of("PK\3\4" + whole), "E_PREFIX");
  ZipBytes zip;
  zip.add("a/hidden", "h");
  const std::string hidden = zip.finish();
  EXPECT_EQ(detail_of(hidden + whole), "E_PREFIX");
}

// An archive behind the record `name` with payload "old"; its own record has
// another payload.
std::string zip_behind(const std::string& name) {
  ZipBytes old;
  old.add(name, "old");
  const std::string whole = old.finish();
  const std::string record = whole.substr(0, whole.find("PK\1\2"));
  ZipBytes zip;
  const auto shift = static_cast<std::uint32_t>(record.size());
  zip.add("a/data.pkl", "new", {.header_offset = shift});
  return record + zip.finish({.directory_shift = shift});
}

// Earlier versions edited in place.
TEST(ZipReader, TakesARecordThatWasReplacedBeforeTheArchive) {
  EXPECT_EQ(detail_of(zip_behind("a/data.pkl")), "");
  EXPECT_EQ(detail_of(zip_behind("a/other.pkl")), "E_PREFIX");
  EXPECT_EQ(detail_of("PK\3\4" + zip_behind("a/data.pkl")), "E_PREFIX");
  std::ifstream file("testdata/valid/edited_in_place.pt", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(detail_of(bytes), "");
  bytes.replace(bytes.find("data.pkl"), 8, "evil.pkl");
  EXPECT_EQ(detail_of(bytes), "E_PREFIX");
}

TEST(ZipReader, RejectsACommentWithASecondEnd) {
  ZipBytes zip;
  zip.add("a/data.pkl", "x");
  const std::string fake = ZipBytes().finish();
  EXPECT_EQ(detail_of(zip.finish({.comment = fake})), "E_ZIP_AMBIGUOUS");
  EXPECT_EQ(
      detail_of(zip.finish({.comment = fake + "tail"})),
      "E_ZIP_AMBIGUOUS");
  // Python's reader does not look at the length of the comment.
  EXPECT_EQ(
      detail_of(zip.finish(
          {.comment = ZipBytes()
                          .finish({.comment = "xx"})
                          .substr(0, kStructBytes<EndRecord>)})),
      "E_ZIP_AMBIGUOUS");
  EXPECT_EQ(detail_of(zip.finish({.comment = "tail"})), "");
}

TEST(ZipReader, RejectsDuplicateNames) {
  EXPECT_EQ(detail_of(named("a/x", "a/x")), "E_DUP_RECORD");
  EXPECT_EQ(detail_of(named("a/data.pkl", "a/DATA.PKL")), "E_DUP_CASEFOLD");
}

TEST(ZipReader, RejectsNamesThatWouldBeDangerousAsPaths) {
  for (const std::string name :
       {"/a/x", "a/../x", "a/./x", "a\\x", "a//x", "a/"}) {
    EXPECT_EQ(detail_of(named("a/y", name)), "E_NAME") << name;
  }
  EXPECT_EQ(detail_of(named("a/y", std::string("a/x\0y", 5))), "E_NAME");
  EXPECT_EQ(detail_of(named("a/y", "a/" + std::string(4095, 'n'))), "E_NAME");
}

TEST(ZipReader, RejectsMissingAndSecondRoots) {
  EXPECT_EQ(detail_of(named("data.pkl", "version")), "E_ROOT");
  EXPECT_EQ(detail_of(named("a/x", "b/x")), "E_ROOTS");
  EXPECT_NE(open_bytes(named("a/x", "b/x")).error().hint, "");
}

TEST(ZipReader, RejectsContradictingLocalHeaders) {
  EXPECT_EQ(
      detail_of(with_lies({.local_name = "a/data.pkX"})),
      "E_LOCAL_MISMATCH");
  EXPECT_EQ(detail_of(with_lies({.local_crc = 1})), "E_LOCAL_MISMATCH");
  EXPECT_EQ(
      detail_of(with_lies({.size = 8, .packed_size = 8})),
      "E_LOCAL_MISMATCH");
}

TEST(ZipReader, CheckedBytesHaveTheirCrc) {
  std::vector<std::byte> scratch;
  const std::string sound = sound_zip();
  const auto zip = open_bytes(sound);
  EXPECT_TRUE(zip->read_checked(*zip->find("data.pkl"), scratch));
  const std::string damaged = with_lies({.crc = 1, .local_crc = 1});
  const auto other = open_bytes(damaged);
  ASSERT_TRUE(other);
  const auto bytes = other->read_checked(*other->find("data.pkl"), scratch);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().detail, "E_CRC");
}

TEST(ZipReader, RejectsEncryptionAndUnknownMethods) {
  for (const int bit : {0, 5, 6, 13}) {
    const auto flags = static_cast<std::uint16_t>(1 << bit);
    const auto zip = open_bytes(with_lies({.flags = flags}));
    ASSERT_FALSE(zip);
    EXPECT_EQ(zip.error().detail, "E_ENCRYPTED");
    EXPECT_EQ(zip.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(zip.error().record, "a/data.pkl");
  }
  EXPECT_EQ(detail_of(with_lies({.method = 12})), "E_METHOD");
  EXPECT_EQ(detail_of(with_lies({.disk = 2})), "E_BOUNDS"); // as PyTorch
}

TEST(ZipReader, RejectsSizesAndOffsetsOutsideTheFile) {
  EXPECT_EQ(detail_of(with_lies({.header_offset = 1U << 30})), "E_BOUNDS");
  EXPECT_EQ(
      detail_of(with_lies({.size = 5000, .packed_size = 5000})),
      "E_BOUNDS");
  std::string extra;
  put_le<std::uint16_t>(extra, 1);
  put_le<std::uint16_t>(extra, 8);
  put_le<std::uint64_t>(extra, ~0ULL - 3);
  EXPECT_EQ(
      detail_of(with_lies({.header_offset = 0xFFFFFFFF, .extra = extra})),
      "E_BOUNDS");
  EXPECT_EQ(detail_of(with_lies({.header_offset = 0xFFFFFFFF})), "E_BOUNDS");
}

TEST(ZipReader, RejectsBombsBeforeAllocating) {
  const auto zip = open_bytes(with_lies({.size = 2'200'000'000, .method = 8}));
  ASSERT_FALSE(zip);
  EXPECT_EQ(zip.error().detail, "E_RATIO");
  EXPECT_EQ(zip.error().code, ErrorCode::kUnsafe);
}

TEST(ZipReader, RejectsOverlappingRecords) {
  ZipBytes zip;
  // The payload of the first holds a whole local header for the second.
  ZipBytes inner;
  inner.add("a/b", "xyz");
  const std::string nested = inner.finish().substr(0, 36);
  zip.add("a/a", nested);
  zip.add("a/b", "xyz", {.header_offset = 33});
  EXPECT_EQ(detail_of(zip.finish()), "E_OVERLAP");
}

TEST(ZipReader, RejectsAWrongDirectoryOffset) {
  ZipBytes zip;
  zip.add("a/data.pkl", "x");
  EXPECT_EQ(detail_of(zip.finish({.directory_shift = 1})), "E_BOUNDS");
  EXPECT_EQ(detail_of(zip.finish({.directory_shift = -41})), "E_PREFIX");
}

TEST(ZipReader, RefusesSeveralDisksAndExtendedEndRecords) {
  const std::string narrow = sound_zip();
  const EndRecord end = *read_struct<EndRecord>(as_byte_span(narrow).last(22));
  const std::string front = narrow.substr(0, narrow.size() - 22);
  const auto with = [&front](EndRecord last) {
    return detail_of(front + to_bytes(last));
  };
  EXPECT_EQ(with(end), "");
  EndRecord other = end;
  other.disk = 1;
  EXPECT_EQ(with(other), "E_BOUNDS");
  other = end;
  other.directory_disk = 1;
  EXPECT_EQ(with(other), "E_BOUNDS");

  const End64Record wide{
      .bytes = kStructBytes<End64Record> - End64Record::kUncounted,
      .count_on_disk = end.count,
      .count = end.count,
      .directory_bytes = end.directory_bytes,
      .directory_offset = end.directory_offset};
  const End64Locator locator{.end64_offset = front.size(), .disks = 1};
  const auto with64 = [&](const End64Record& record,
                          const End64Locator& place) {
    return detail_of(
        front + to_bytes(record) + to_bytes(place) + to_bytes(end));
  };
  EXPECT_EQ(with64(wide, locator), "");
  End64Record other64 = wide;
  other64.directory_disk = 1;
  EXPECT_EQ(with64(other64, locator), "E_BOUNDS");
  End64Locator place = locator;
  place.disks = 2;
  EXPECT_EQ(with64(wide, place), "E_BOUNDS");
  place = locator;
  place.disk = 1;
  EXPECT_EQ(with64(wide, place), "E_BOUNDS");

  // Python's zipfile reads the bytes right before the locator, wherever that
  // points: here a second record in the extension of the first.
  other64 = wide;
  other64.bytes += kStructBytes<End64Record>;
  EXPECT_EQ(
      detail_of(
          front + to_bytes(other64) + to_bytes(wide) + to_bytes(locator) +
          to_bytes(end)),
      "E_BOUNDS");
}

TEST(ZipReader, RefusesMoreRecordsThanTheLimit) {
  const std::string bytes = sound_zip();
  Limits limits;
  limits.max_records = 1;
  const auto zip = ZipReader::open(make_source(as_byte_span(bytes)), limits);
  ASSERT_FALSE(zip);
  EXPECT_EQ(zip.error().detail, "E_LIMIT");
}

TEST(ZipReader, SurvivesEveryFlippedBit) {
  const std::string whole = sound_zip();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const auto zip = open_bytes(bytes);
    if (!zip) {
      EXPECT_FALSE(zip.error().detail.empty()) << bit;
      continue;
    }
    for (const ZipRecord& record : zip->records()) {
      std::vector<std::byte> scratch;
      const auto content = zip->read(record, scratch);
      if (content && zip->check_crc(record) && zip->has_crc(record)) {
        const bool is_first = record.name == "data.pkl";
        EXPECT_EQ(text_of(*content), is_first ? "payload" : "3\n") << bit;
      }
    }
  }
}

} // namespace
} // namespace lockstep::ckpt
