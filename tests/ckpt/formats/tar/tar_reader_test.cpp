// SPDX-License-Identifier: BSD-3-Clause
//
// What testdata_test does not say about tar checkpoints: sharing, order of
// storages, and folders that somebody unpacked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/formats/tar/tar_members.h"
#include "lockstep/ckpt/load.h"
#include "lockstep/ckpt/verify.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr const char* kFile = "testdata/valid/tar_2017.pth";

TEST(TarReader, PutsTensorsOnViewsOntoTheWholeStorage) {
  const auto file = load(kFile);
  ASSERT_TRUE(file) << to_string(file.error());
  const Tensor* weight = file->root.find("weight")->as_tensor();
  const Tensor* part = file->root.find("part")->as_tensor();
  EXPECT_EQ(part->storage, weight->storage);
  EXPECT_EQ(part->offset, 3);
  EXPECT_EQ(file->storages.size(), 2U);
  EXPECT_EQ(file->storages[1]->location, "cuda:0");
  EXPECT_EQ(file->era, "torch 0.1.9 or older");
}

TEST(TarReader, NamesTheMemberAndTheOffsetOfAnError) {
  const auto file = load("testdata/corrupt/tar_tensor_past.pth");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().record, "tensors");
  const auto view = load("testdata/corrupt/tar_id_unknown.pth");
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().record, "pickle");
  EXPECT_TRUE(view.error().offset);
  EXPECT_THAT(view.error().message, HasSubstr("'99'"));
}

TEST(TarReader, SaysWhatAForeignArchiveHolds) {
  const auto file = load("testdata/corrupt/tar_no_pickle.pth");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr("notes.txt"));
  const auto nested = load("testdata/corrupt/tar_in_folder.pth");
  ASSERT_FALSE(nested);
  EXPECT_THAT(nested.error().hint, HasSubstr("name the folder 'model'"));
}

TEST(TarMembers, ListsNamesInFileOrder) {
  const auto source = open_source(kFile);
  ASSERT_TRUE(source);
  const auto tar = TarMembers::open(*source, {});
  ASSERT_TRUE(tar) << to_string(tar.error());
  EXPECT_THAT(
      tar->names(),
      ElementsAre("sys_info", "pickle", "tensors", "storages"));
  EXPECT_TRUE(tar->warnings().empty());
  EXPECT_EQ(tar->find("nothing"), nullptr);
}

TEST(TarMembers, KeepsReadsInsideTheMember) {
  const auto source = open_source(kFile);
  ASSERT_TRUE(source);
  const auto tar = TarMembers::open(*source, {});
  ASSERT_TRUE(tar);
  const auto member = tar->find("pickle");
  std::vector<std::byte> scratch;
  EXPECT_TRUE(member->view(0, member->size(), scratch));
  for (const std::uint64_t offset : {member->size(), ~std::uint64_t{0}}) {
    const auto bytes = member->view(offset, 1, scratch);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().detail, "E_BOUNDS");
  }
}

TEST(TarMembers, WarnsOfBytesBehindTheEnd) {
  auto bytes = *read_text(real_fs(), kFile);
  bytes += "more";
  const auto file = load(make_source(as_byte_span(bytes)), "file");
  ASSERT_TRUE(file) << to_string(file.error());
  EXPECT_THAT(file->warnings, ElementsAre(Field(&Warning::name, "W_TRAILING")));
}

TEST(TarMembers, SurvivesEveryCutAndManyFlips) {
  const auto bytes = *read_text(real_fs(), kFile);
  for (std::size_t cut = 0; cut < bytes.size(); cut += 7) {
    const std::string part = bytes.substr(0, cut);
    const auto file = load(make_source(as_byte_span(part)), "file");
    EXPECT_TRUE(file || !file.error().detail.empty()) << cut;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    const auto file = load(make_source(as_byte_span(flipped)), "file");
    EXPECT_TRUE(file || !file.error().detail.empty()) << at;
  }
}

// The four members as files, as `tar xf` leaves them.
void unpack(FileSystem& fs, const std::string& folder) {
  const auto source = open_source(kFile);
  const auto tar = TarMembers::open(*source, {});
  ASSERT_TRUE(fs.create_directories(folder));
  for (const std::string& name : tar->names()) {
    const auto member = tar->find(name);
    std::vector<std::byte> scratch;
    const auto bytes = member->view(0, member->size(), scratch);
    auto file = fs.create(format("{}/{}", folder, name), 0644);
    ASSERT_TRUE(bytes && file);
    ASSERT_TRUE((*file)->write(*bytes));
    ASSERT_TRUE((*file)->close());
  }
}

TEST(TarFolder, IsReadAsTheArchive) {
  MemoryFs fs;
  unpack(fs, "model.pth");
  for (const bool use_mmap : {true, false}) {
    const auto file = load("model.pth", {.use_mmap = use_mmap}, fs);
    ASSERT_TRUE(file) << to_string(file.error());
    EXPECT_EQ(file->format, "tar-folder");
    EXPECT_EQ(*digest(file->root), *digest((*load(kFile)).root));
  }
  const auto report = verify("model.pth", {}, fs);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_sound());
  EXPECT_EQ(report->records, 2U);
}

TEST(TarFolder, IsNoCheckpointWithoutItsPickle) {
  MemoryFs fs;
  unpack(fs, "model.pth");
  ASSERT_TRUE(fs.remove("model.pth/pickle"));
  const auto file = load("model.pth", {}, fs);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_WRONG_FORMAT");
}

} // namespace
} // namespace lockstep::ckpt
