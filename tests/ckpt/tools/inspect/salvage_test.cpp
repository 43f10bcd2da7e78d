// SPDX-License-Identifier: BSD-3-Clause
//
// What is rescued from cut and damaged files is right; what is not is named.
#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/formats/archive/pt_archive.h"
#include "lockstep/ckpt/inspect.h"
#include "lockstep/ckpt/verify.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/ckpt/zip/zip_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::HasSubstr;

class Salvage : public testing::Test {
 protected:
  void write(const std::string& path, std::string_view bytes) {
    (void)disk_.remove(path);
    auto file = disk_.create(path, 0644);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(as_byte_span(bytes)));
    ASSERT_TRUE((*file)->close());
  }
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Result<SalvageReport> rescue() {
    LOCKSTEP_ASSIGN(
        const auto source,
        open_source("in.pt", {.use_mmap = false}, disk_));
    return salvage(source, "out.pt", {.use_mmap = false}, {}, disk_);
  }
  // Tensors of `original` that the copy lacks; anything else is a failure.
  std::size_t missing_from_copy(const std::string& original) {
    const auto before = load(original);
    const auto after = load("out.pt", {}, disk_);
    EXPECT_TRUE(before && after);
    const auto report = diff(before->root, after->root);
    EXPECT_TRUE(report);
    for (const DiffRow& row : report->rows) {
      EXPECT_EQ(row.kind, DiffKind::kOnlyA) << row.name;
    }
    return report->rows.size();
  }
  MemoryFs disk_;
};

TEST_F(Salvage, OfASoundFileCopiesEverything) {
  write("in.pt", bytes_of("testdata/valid/training.pth.tar"));
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->lost.empty());
  EXPECT_FALSE(report->is_without_directory);
  EXPECT_EQ(missing_from_copy("testdata/valid/training.pth.tar"), 0U);
}

TEST_F(Salvage, NamesTheTensorOfADamagedRecord) {
  const std::string original = "testdata/valid/training.pth.tar";
  std::string bytes = bytes_of(original);
  const std::size_t at = bytes.find("/data/3");
  ASSERT_NE(at, std::string::npos);
  const std::size_t payload = (at + 7 + 4 + 63) / 64 * 64; // behind padding
  bytes[payload] = static_cast<char>(bytes[payload] ^ 1);
  write("in.pt", bytes);
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  ASSERT_EQ(report->lost.size(), 1U);
  EXPECT_THAT(report->lost[0].reason, HasSubstr("CRC-32"));
  EXPECT_EQ(missing_from_copy(original), 1U);
}

TEST_F(Salvage, FindsRecordsWithoutADirectory) {
  const std::string original = "testdata/valid/training.pth.tar";
  const std::string bytes = bytes_of(original);
  write("in.pt", bytes.substr(0, bytes.find("PK\x01\x02")));
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->is_without_directory);
  EXPECT_TRUE(report->lost.empty());
  EXPECT_EQ(missing_from_copy(original), 0U);
  EXPECT_TRUE(verify("out.pt", {}, disk_)->is_sound());
}

// Earlier versions edited files in place: what was replaced is still in them.
TEST_F(Salvage, TakesTheRecordsThatTheDirectoryOfAnEditedFileLists) {
  for (const char* name : {"", "_twice", "_grown"}) {
    const std::string original =
        format("testdata/valid/edited_in_place{}.pt", name);
    std::string bytes = bytes_of(original);
    const std::size_t at = bytes.find("dataparallel/version");
    ASSERT_NE(at, std::string::npos);
    bytes[at] = 'D'; // in the local header
    write("in.pt", bytes);
    (void)disk_.remove("out.pt");
    ASSERT_FALSE(load("in.pt", {}, disk_));
    const auto report = rescue();
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_FALSE(report->is_without_directory);
    EXPECT_TRUE(report->lost.empty());
    EXPECT_EQ(missing_from_copy(original), 0U) << original;
  }
}

TEST_F(Salvage, TakesTheLastOfEqualNamesWithoutADirectory) {
  const std::string original = "testdata/valid/edited_in_place_twice.pt";
  const std::string bytes = bytes_of(original);
  write(
      "in.pt",
      bytes.substr(0, bytes.find("PK\x01\x02", bytes.rfind("PK\3\4"))));
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->is_without_directory);
  EXPECT_TRUE(report->lost.empty());
  EXPECT_EQ(missing_from_copy(original), 0U);
}

TEST_F(Salvage, OfEveryTruncationIsRightOrAnError) {
  const std::string original = "testdata/valid/training.pth.tar";
  const std::string bytes = bytes_of(original);
  std::size_t rescued = 0;
  for (std::size_t size = 1; size < bytes.size(); size += 61) {
    write("in.pt", std::string_view(bytes).substr(0, size));
    (void)disk_.remove("out.pt");
    const auto report = rescue();
    if (report) {
      rescued = std::max(rescued, static_cast<std::size_t>(report->rescued));
      EXPECT_EQ(missing_from_copy(original), report->lost.size()) << size;
    }
  }
  EXPECT_GT(rescued, 5U);
}

// Of unknown byte order, with a sound note and a damaged one.
TEST_F(Salvage, KeepsSoundRecordsBesideTheValue) {
  const auto note = [](const char* name, const char* text) {
    return ExtraRecord{
        .name = name,
        .content = storage_of(text, DType::kUInt8)};
  };
  WriteOptions options;
  options.extra_records = {note("notes/good", "sound"), note("bad", "damaged")};
  options.byteorder_record = false;
  ASSERT_TRUE(write_checkpoint(
      "in.pt",
      Value::dict({{"w", floats({1})}}),
      options,
      disk_));
  std::string bytes = *read_text(disk_, "in.pt");
  bytes[bytes.find("damaged")] ^= 1;
  write("in.pt", bytes);
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->rescued, 1U);
  ASSERT_EQ(report->lost_records.size(), 1U);
  EXPECT_EQ(report->lost_records[0].name, "bad");
  EXPECT_THAT(report->lost_records[0].reason, HasSubstr("CRC-32"));
  const auto copy = load("out.pt", {}, disk_);
  ASSERT_TRUE(copy) << to_string(copy.error());
  EXPECT_EQ(copy->byteorder, "");
  ASSERT_EQ(copy->extra_records.size(), 1U);
  EXPECT_EQ(copy->extra_records[0].name, "notes/good");
  EXPECT_EQ(as_text(*copy->extra_records[0].content->source->load()), "sound");
}

// As a download with the header of the server's answer.
TEST_F(Salvage, LeavesOutForeignBytesInFront) {
  const Value root = Value::dict({{"w", floats({1, 2})}});
  ASSERT_TRUE(save("in.pt", root, {}, disk_));
  const std::string whole = *read_text(disk_, "in.pt");
  const std::string front = "HTTP/1.1 200 OK\r\n\r\nPK\3\4";
  for (const std::string& archive :
       {whole, whole.substr(0, whole.size() - 100)}) {
    write("in.pt", front + archive);
    const auto report = rescue();
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_EQ(report->foreign_bytes, front.size());
    EXPECT_EQ(report->is_without_directory, archive.size() < whole.size());
    EXPECT_EQ(report->rescued, 1U);
    EXPECT_EQ(*digest((*load("out.pt", {}, disk_)).root), *digest(root));
  }
  write("in.pt", std::string(64 << 10, '\n') + whole);
  EXPECT_EQ(rescue().error().detail, "E_WRONG_FORMAT");
  EXPECT_THAT(
      rescue().error().message,
      testing::HasSubstr("begins in the first 64 KiB of the file"));
}

// A record that makes an archive a TorchScript program.
TEST_F(Salvage, KeepsTheNotesOfAProgramAndNamesItsCode) {
  const auto record = [](const char* name) {
    return ExtraRecord{
        .name = name,
        .content = storage_of("text", DType::kUInt8)};
  };
  ASSERT_TRUE(save(
      "in.pt",
      Value::dict({{"w", floats({1})}}),
      {.extra_records =
           {record("constants.pkl"),
            record("code/a.py"),
            record("code/b.py"),
            record("extra/note")}},
      disk_));
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->rescued, 1U);
  ASSERT_EQ(report->lost_records.size(), 2U);
  EXPECT_EQ(report->lost_records[0].name, "code/");
  EXPECT_EQ(report->lost_records[1].name, "constants.pkl");
  EXPECT_THAT(report->lost_records[1].reason, HasSubstr("TorchScript"));
  const auto copy = load("out.pt", {}, disk_);
  ASSERT_TRUE(copy) << to_string(copy.error());
  EXPECT_EQ(copy->format, "zip");
  ASSERT_EQ(copy->extra_records.size(), 1U);
  EXPECT_EQ(copy->extra_records[0].name, "extra/note");
}

// As `torch.jit.save` orders its records, with the code before the constants.
TEST_F(Salvage, KnowsAProgramThatIsCutBeforeItsConstants) {
  const auto record = [](const char* name) {
    return ExtraRecord{
        .name = name,
        .content = storage_of("text", DType::kUInt8)};
  };
  ASSERT_TRUE(save(
      "in.pt",
      Value::dict({{"w", floats({1})}}),
      {.extra_records =
           {record("extra/note"),
            record("code/__torch__.py"),
            record("code/__torch__.py.debug_pkl"),
            record("constants.pkl")}},
      disk_));
  const std::string bytes = *read_text(disk_, "in.pt");
  write("in.pt", bytes.substr(0, bytes.find("in/constants.pkl") + 5));
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->rescued, 1U);
  ASSERT_EQ(report->lost_records.size(), 1U);
  EXPECT_EQ(report->lost_records[0].name, "code/");
  EXPECT_THAT(report->lost_records[0].reason, HasSubstr("TorchScript"));
  const auto copy = load("out.pt", {}, disk_);
  ASSERT_TRUE(copy) << to_string(copy.error());
  ASSERT_EQ(copy->extra_records.size(), 1U);
  EXPECT_EQ(copy->extra_records[0].name, "extra/note");
}

// The names in the pickle tell, too: here the code has other names.
TEST_F(Salvage, KnowsAProgramByItsClasses) {
  Pickle p;
  p.global("__torch__", "Net").op(')').op(0x81).op('}').mark();
  p.text("training").op(0x88).op('u').op('b').stop();
  ZipBytes zip;
  zip.add("a/data.pkl", p.bytes());
  zip.add("a/version", "3\n");
  zip.add("a/code/other.py", "text");
  write("in.pt", zip.finish());
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  ASSERT_EQ(report->lost_records.size(), 1U);
  EXPECT_EQ(report->lost_records[0].name, "code/");
}

TEST_F(Salvage, SaysWhatItMadeOfAnOddByteOrder) {
  ASSERT_TRUE(save("in.pt", Value::dict({{"w", floats({1})}}), {}, disk_));
  std::string bytes = *read_text(disk_, "in.pt");
  bytes.replace(bytes.find("little"), 6, "Little");
  const auto crc_of = [](std::string_view text) {
    std::string crc;
    put_le(crc, crc32(as_byte_span(text)));
    return crc;
  };
  for (std::size_t at = bytes.find(crc_of("little")); at != std::string::npos;
       at = bytes.find(crc_of("little"))) {
    bytes.replace(at, 4, crc_of("Little"));
  }
  write("in.pt", bytes);
  const auto odd = rescue();
  ASSERT_TRUE(odd) << to_string(odd.error());
  ASSERT_EQ(odd->warnings.size(), 1U);
  EXPECT_THAT(
      to_string(odd->warnings[0]),
      HasSubstr("holds 'Little', which is no order; the bytes are taken as "
                "little-endian"));
  EXPECT_EQ((*load("out.pt", {}, disk_)).byteorder, "");
}

// Behind the value, where a download that breaks off loses records first.
TEST_F(Salvage, NamesTheRecordThatIsCut) {
  const auto note = [](const char* name) {
    return ExtraRecord{
        .name = name,
        .content = storage_of(std::string(100, 'n'), DType::kUInt8)};
  };
  ASSERT_TRUE(save(
      "in.pt",
      Value::dict({{"w", floats({1})}}),
      {.extra_records = {note("whole"), note("cut")}},
      disk_));
  const std::string bytes = *read_text(disk_, "in.pt");
  const std::size_t header = bytes.find("in/cut");
  write("in.pt", bytes.substr(0, bytes.find("nnnn", header) + 50));
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->rescued, 1U);
  EXPECT_TRUE(report->lost.empty());
  ASSERT_EQ(report->lost_records.size(), 1U);
  EXPECT_EQ(report->lost_records[0].name, "cut");
  const auto copy = load("out.pt", {}, disk_);
  ASSERT_TRUE(copy) << to_string(copy.error());
  ASSERT_EQ(copy->extra_records.size(), 1U);
  EXPECT_EQ(copy->extra_records[0].name, "whole");

  // A cut storage is a lost tensor and not a record as well.
  write("in.pt", bytes.substr(0, bytes.find("in/data/0") + 9));
  const auto less = rescue();
  ASSERT_TRUE(less) << to_string(less.error());
  EXPECT_EQ(less->lost.size(), 1U);
  EXPECT_TRUE(less->lost_records.empty());
}

TEST_F(Salvage, OfAWholeModelIsADictOfNames) {
  write("in.pt", bytes_of("testdata/valid/whole_model.pt"));
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->is_flat);
  EXPECT_EQ(missing_from_copy("testdata/valid/whole_model.pt"), 0U);
}

// With a class that is not written, and keys that look alike.
TEST_F(Salvage, AFlatCopyKeepsTensorsOfOneName) {
  const Value root = Value::dict(
      {{"a.b", floats({1})},
       {"a", Value::dict({{"b", floats({2})}})},
       {"unknown", Dict{.kind = Dict::Kind::kCounter}}});
  auto records = internal::pt_records(write_pickle(root).value());
  const std::string known = "collections\nCounter";
  std::string& pickle =
      std::ranges::find(records, "data.pkl", &internal::ArchiveRecord::name)
          ->text;
  pickle.replace(pickle.find(known), known.size(), "collectionz\nCounter");
  ASSERT_TRUE(internal::save_archive("in.pt", std::move(records), {}, disk_));
  const auto report = rescue();
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->is_flat);
  EXPECT_EQ(report->rescued, 2U);
  ASSERT_EQ(report->warnings.size(), 1U);
  EXPECT_EQ(
      to_string(report->warnings[0]),
      "W_SAME_NAME: two tensors are named 'a.b'; the second is 'a.b (2)' now");
  const auto copy = load("out.pt", {}, disk_).value();
  EXPECT_EQ(*copy.root.find("a.b")->as_tensor()->span<float>().data(), 1.0F);
  EXPECT_EQ(
      *copy.root.find("a.b (2)")->as_tensor()->span<float>().data(),
      2.0F);
}

TEST_F(Salvage, RefusesOtherFormatsAndALostPickle) {
  write("in.pt", "no archive");
  EXPECT_EQ(rescue().error().detail, "E_WRONG_FORMAT");
  write("in.pt", bytes_of("testdata/corrupt/crc_pickle.pt"));
  EXPECT_EQ(rescue().error().detail, "E_CRC");
  EXPECT_FALSE(disk_.stat("out.pt"));
}

} // namespace
} // namespace lockstep::ckpt
