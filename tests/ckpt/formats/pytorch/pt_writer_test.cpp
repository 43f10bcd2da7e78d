// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>

#include <gmock/gmock.h>

#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/zip/zip_reader.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;

Value tiny() {
  return Value::ordered_dict(
      {{"w", tensor_of<float>(DType::kFloat32, {1, 2}, {2})}});
}

std::string saved(
    const Value& value,
    const std::string& path,
    const SaveOptions& options = {}) {
  MemoryFs fs;
  EXPECT_TRUE(fs.create_directories(parent_directory(path)));
  const Status status = save(path, value, options, fs);
  EXPECT_TRUE(status) << to_string(status.error());
  auto text = read_text(fs, path);
  return text ? *text : "";
}

std::string root_of(const std::string& bytes) {
  const auto zip = ZipReader::open(make_source(as_byte_span(bytes)));
  return zip ? zip->root() : to_string(zip.error());
}

// The worked example of the format's description, down to the id.
TEST(PtWriter, EqualsTheWorkedExample) {
  const std::string bytes = saved(tiny(), "tiny.pt");
  ASSERT_EQ(bytes.size(), 1556U);
  EXPECT_EQ(bytes.substr(960, 40), "1572819951185464302603626797169047634540");
  const auto zip = ZipReader::open(make_source(as_byte_span(bytes)));
  ASSERT_TRUE(zip);
  const std::vector<std::pair<std::string, std::uint32_t>> expected{
      {"data.pkl", 0x27839ba2},
      {".format_version", 0x83dcefb7},
      {".storage_alignment", 0xe971773f},
      {"byteorder", 0x19e33d85},
      {"data/0", 0x2e3fa576},
      {"version", 0x55679ed1},
      {".data/serialization_id", 0x8ae956c4}};
  ASSERT_EQ(zip->records().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(zip->records()[i].name, expected[i].first);
    EXPECT_EQ(zip->records()[i].crc, expected[i].second) << expected[i].first;
    EXPECT_TRUE(zip->check_crc(zip->records()[i]));
  }
}

TEST(PtWriter, NamesTheRootAsPyTorch) {
  EXPECT_EQ(root_of(saved(tiny(), "checkpoint.pth.tar")), "checkpoint.pth");
  EXPECT_EQ(root_of(saved(tiny(), "dir.x/noext")), "noext");
  EXPECT_EQ(root_of(saved(tiny(), ".hidden")), "archive");
  EXPECT_EQ(root_of(saved(tiny(), "m\xc3\xbc.pt")), "archive");
  EXPECT_EQ(root_of(saved(tiny(), "a.pt", {.archive_name = "b"})), "b");
}

TEST(PtWriter, RefusesRootsThatAreNoNames) {
  MemoryFs fs;
  for (const std::string name : {"a/b", "..", "a\\b", "\xff"}) {
    const Status status = save("x.pt", tiny(), {.archive_name = name}, fs);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(PtWriter, EqualTreesGiveEqualBytes) {
  EXPECT_EQ(saved(tiny(), "a/m.pt"), saved(tiny(), "b/m.pt"));
  EXPECT_NE(saved(tiny(), "m.pt"), saved(tiny(), "n.pt"));
}

TEST(PtWriter, ErrorsLeaveTheOldFile) {
  MemoryFs fs;
  ASSERT_TRUE(save("m.pt", 1, {}, fs));
  const auto before = read_text(fs, "m.pt");
  const Status bad = save("m.pt", Object{.global = "os.system"}, {}, fs);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().path, "m.pt");
  Tensor cut = tensor_of<float>(DType::kFloat32, {1, 2}, {2});
  cut.storage->nbytes = 16;
  const Status damaged = save("m.pt", cut, {}, fs);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().detail, "E_STORAGE_SHORT");
  EXPECT_EQ(*read_text(fs, "m.pt"), *before);
  const auto names = fs.list(".");
  ASSERT_TRUE(names);
  EXPECT_THAT(*names, ElementsAre("m.pt"));
}

// Whatever fails on the disk, the old file or the new one is there.
TEST(PtWriter, SurvivesEveryFailureOfTheDisk) {
  MemoryFs clean;
  ASSERT_TRUE(save("m.pt", tiny(), {}, clean));
  const std::string wanted = *read_text(clean, "m.pt");
  bool finished = false;
  for (std::uint64_t n = 0; !finished; ++n) {
    MemoryFs memory;
    ASSERT_TRUE(save("m.pt", 1, {}, memory));
    const std::string old = *read_text(memory, "m.pt");
    FaultFs faulty(memory, {.fail_at = n, .error_number = ENOSPC});
    const Status status = save("m.pt", tiny(), {}, faulty);
    const std::string now = *read_text(memory, "m.pt");
    EXPECT_TRUE(now == old || now == wanted) << n;
    finished = static_cast<bool>(status) && faulty.operations() <= n;
    EXPECT_TRUE(!status || now == wanted) << n;
  }
}

// In any letter case: PyTorch does not tell them apart.
TEST(WritePt, NumbersStoragesAroundExtraRecords) {
  MemoryFs fs;
  const auto extra = [](std::string name) {
    return ExtraRecord{
        .name = std::move(name),
        .content = storage_of("mine", DType::kUInt8)};
  };
  const auto tensor = [](float value) {
    return tensor_of<float>(DType::kFloat32, {value}, {1});
  };
  ASSERT_TRUE(save(
      "a.pt",
      Value::list({tensor(1), tensor(2), tensor(3)}),
      {.extra_records =
           {extra("data/0"), extra("Data/2/note"), extra("notes/data/3")}},
      fs));
  const auto file = load("a.pt", {}, fs);
  ASSERT_TRUE(file) << to_string(file.error());
  std::vector<std::string> keys;
  for (const auto& storage : file->storages) {
    keys.push_back(storage->key);
  }
  EXPECT_THAT(keys, testing::ElementsAre("1", "3", "4"));
  ASSERT_EQ(file->extra_records.size(), 3U);
  EXPECT_EQ(as_text(*file->extra_records[0].content->source->load()), "mine");
}

TEST(WritePt, RefusesExtraRecordsThatWouldHideOthers) {
  for (const char* name :
       {"data.pkl",
        "Data.pkl",
        "version",
        ".data/version",
        "ByteOrder",
        ".data/serialization_id",
        "../up",
        "",
        "\xff"}) {
    MemoryFs fs;
    const ExtraRecord record{
        .name = name,
        .content = storage_of("x", DType::kUInt8)};
    const Status status =
        save("a.pt", Value(1), {.extra_records = {record}}, fs);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().detail, "E_NAME") << name;
  }
  MemoryFs fs;
  const ExtraRecord note{
      .name = "note",
      .content = storage_of("x", DType::kUInt8)};
  EXPECT_FALSE(save("a.pt", Value(1), {.extra_records = {note, note}}, fs));
}

} // namespace
} // namespace lockstep::ckpt
