// SPDX-License-Identifier: BSD-3-Clause
//
// Folders that somebody unzipped a checkpoint into.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/zip/zip_reader.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::Field;

constexpr const char* kUnpackedFile = "testdata/valid/training.pth.tar";

class Unpacked : public testing::Test {
 protected:
  Unpacked() {
    const auto source = open_source(kUnpackedFile);
    const auto zip = ZipReader::open(*source);
    for (const ZipRecord& record : zip->records()) {
      std::vector<std::byte> scratch;
      put(record.name, *zip->read(record, scratch));
    }
  }

  void put(const std::string& name, ByteSpan bytes) {
    const std::string path = "down/training.pth/" + name;
    static_cast<void>(fs_.remove(path));
    static_cast<void>(fs_.create_directories(parent_directory(path)));
    auto file = fs_.create(path, 0644);
    ASSERT_TRUE(file && (*file)->write(bytes) && (*file)->close()) << path;
  }

  Result<Checkpoint> load_folder(const std::string& path) {
    return load(path, {}, fs_);
  }

  std::string detail() {
    const auto file = load_folder("down/training.pth");
    return file ? "" : file.error().detail;
  }

  MemoryFs fs_;
};

TEST_F(Unpacked, IsReadAsTheArchive) {
  for (const char* path : {"down/training.pth", "down"}) {
    const auto file = load_folder(path);
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_EQ(file->format, "zip-folder");
    EXPECT_EQ(file->archive_name, "training.pth");
    EXPECT_EQ(*digest(file->root), *digest((*load(kUnpackedFile)).root));
  }
  const auto report = verify("down", {}, fs_);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_sound());
}

TEST_F(Unpacked, GivesABlockOfAFileThatIsNotMapped) {
  const auto file = load("down", {.use_mmap = false}, fs_);
  ASSERT_TRUE(file) << to_string(file.error());
  for (const auto& storage : file->storages) {
    std::string streamed;
    EXPECT_TRUE(storage->source->stream([&](ByteSpan block) {
      streamed += as_text(block);
      return Status();
    }));
    std::vector<std::byte> scratch;
    const auto view = storage->source->view(0, storage->nbytes, scratch);
    ASSERT_TRUE(view) << to_string(view.error());
    EXPECT_EQ(streamed, as_text(*view));
    EXPECT_TRUE(view->empty() || view->data() == scratch.data());
  }
}

TEST_F(Unpacked, NeedsEveryStorage) {
  ASSERT_TRUE(fs_.remove("down/training.pth/data/1"));
  const auto file = load_folder("down");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_NO_STORAGE");
  EXPECT_EQ(file.error().record, "data/1");
}

TEST_F(Unpacked, NeedsWholeStorages) {
  put("data/1", as_byte_span("cut"));
  EXPECT_EQ(detail(), "E_STORAGE_SHORT");
}

TEST_F(Unpacked, WarnsOfLongStorages) {
  put("data/1", as_byte_span(std::string(4000, 'x')));
  const auto file = load_folder("down");
  ASSERT_TRUE(file);
  EXPECT_THAT(
      file->warnings,
      ElementsAre(Field(&Warning::name, "W_STORAGE_LONG")));
}

TEST_F(Unpacked, IsReadInTheByteOrderThatItSaysOrTheCallerKnows) {
  put("byteorder", as_byte_span("middle"));
  EXPECT_EQ(detail(), "E_BYTEORDER");
  put("byteorder", as_byte_span("big"));
  const auto said = load_folder("down");
  ASSERT_TRUE(said) << to_string(said.error());
  ASSERT_TRUE(fs_.remove("down/training.pth/byteorder"));
  const auto known = load("down", {.byteorder = std::endian::big}, fs_);
  ASSERT_TRUE(known) << to_string(known.error());
  EXPECT_EQ(*digest(said->root), *digest(known->root));
  EXPECT_NE(*digest(said->root), *digest((*load_folder("down")).root));
}

TEST_F(Unpacked, NeverLeavesItsFolder) {
  const auto bytes = read_text(fs_, "down/training.pth/data.pkl");
  std::string pickle = *bytes;
  const std::string key(
      "X\x01\0\0\0"
      "0",
      6);
  const std::string outside(
      "X\x04\0\0\0"
      "../x",
      9);
  const std::size_t at = pickle.find(key);
  ASSERT_NE(at, std::string::npos);
  pickle.replace(at, key.size(), outside);
  put("data.pkl", as_byte_span(pickle));
  EXPECT_EQ(detail(), "E_NAME");
}

TEST_F(Unpacked, NamesTheFileOfABrokenPickle) {
  put("data.pkl", as_byte_span("\x80\x02}"));
  const auto file = load_folder("down");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().record, "data.pkl");
}

TEST(AnyFolder, IsNoCheckpoint) {
  MemoryFs fs;
  ASSERT_TRUE(fs.create_directories("empty"));
  const auto file = load("empty", {}, fs);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_WRONG_FORMAT");
}

} // namespace
} // namespace lockstep::ckpt
