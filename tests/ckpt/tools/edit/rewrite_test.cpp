// SPDX-License-Identifier: BSD-3-Clause
//
// A checkpoint that is changed under its own name: the edit dies before each of
// its operations, and after each of these the power goes in six ways.
#include <cerrno>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/core/write_options.h"
#include "lockstep/ckpt/edit.h"
#include "lockstep/ckpt/verify.h"
#include "lockstep/ckpt/zip/zip_reader.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/ckpt/zip/zip_fixture.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;

const std::string kPath = "m.pt";

// The names are so long that the directory is larger than the 64 KiB in which
// readers look for the end of an archive.
Value wrapped(int tensors) {
  Value weights = Value::ordered_dict({});
  for (int i = 0; i < tensors; ++i) {
    weights.set(
        format("module.layer{}.{}", i, std::string(60, 'x')),
        tensor_of<float>(DType::kFloat32, {static_cast<float>(i)}, {1}));
  }
  return Value::dict({{"state_dict", weights}, {"epoch", 7}});
}

MemoryFs disk_with(const Value& root) {
  MemoryFs fs;
  EXPECT_TRUE(save(kPath, root, {.archive_name = "m"}, fs));
  return fs;
}

Status strip(FileSystem& fs) {
  LOCKSTEP_ASSIGN(const Checkpoint file, load(kPath, {.use_mmap = false}, fs));
  LOCKSTEP_ASSIGN(const Edited edited, strip_prefix(file.root, {}));
  return rewrite(file, edited.root, kPath, {}, fs);
}

// Where the writes begin among the operations of an edit: reads come first, and
// failing there is failing to read.
std::uint64_t first_write(const Value& root) {
  constexpr std::uint64_t kMost = 16;
  MemoryFs memory = disk_with(root);
  FaultFs counting(memory);
  EXPECT_TRUE(strip(counting));
  const std::uint64_t all = counting.operations();
  return all > kMost ? all - kMost : 0;
}

std::vector<PowerLoss> all_losses() {
  std::vector<PowerLoss> losses;
  for (const auto data :
       {PowerLoss::Data::kLost,
        PowerLoss::Data::kKept,
        PowerLoss::Data::kTorn}) {
    losses.push_back({.data = data, .keep_names = false});
    losses.push_back({.data = data, .keep_names = true});
  }
  return losses;
}

class Rewrites : public testing::TestWithParam<int> {
 protected:
  const Value root_ = wrapped(GetParam());
  const std::string old_ = [this] {
    MemoryFs fs = disk_with(root_);
    return *read_text(fs, kPath);
  }();
  const std::string new_ = [this] {
    MemoryFs fs = disk_with(root_);
    EXPECT_TRUE(strip(fs));
    return *read_text(fs, kPath);
  }();
};

TEST_P(Rewrites, MakeASoundFileWithTheNewNames) {
  MemoryFs fs = disk_with(root_);
  ASSERT_TRUE(strip(fs));
  const auto report = verify(kPath, {}, fs);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->is_sound());
  const auto file = load(kPath, {}, fs);
  ASSERT_TRUE(file);
  EXPECT_THAT(file->warnings, testing::IsEmpty());
  const Dict& weights = *file->root.find("state_dict")->as_dict();
  ASSERT_EQ(weights.items.size(), static_cast<std::size_t>(GetParam()));
  EXPECT_TRUE(weights.items[0].first.as_string()->starts_with("layer0."));
}

TEST(Rewrite, AnUnknownByteOrderStaysUnknown) {
  MemoryFs fs;
  WriteOptions options;
  options.byteorder_record = false;
  ASSERT_TRUE(write_checkpoint(kPath, wrapped(2), options, fs));
  ASSERT_TRUE(strip(fs));
  EXPECT_EQ((*load(kPath, {}, fs)).byteorder, "");
  const auto big = load(kPath, {.byteorder = std::endian::big}, fs);
  ASSERT_TRUE(big);
  EXPECT_EQ(big->byteorder, "big");
}

// Byte for byte the old file or the new one: whoever reads either is never in
// trouble.
TEST_P(Rewrites, LeaveTheOldOrTheNewFileAfterEveryKillAndPowerCut) {
  int states = 0;
  bool finished = false;
  for (std::uint64_t n = first_write(root_); !finished; ++n) {
    MemoryFs memory = disk_with(root_);
    FaultFs faulty(
        memory,
        {.fail_at = n,
         .failures = FaultPlan::kNever,
         .short_write_bytes = 70'000});
    finished = strip(faulty).has_value();
    const std::string held = *read_text(memory, kPath);
    EXPECT_TRUE(held == new_ || (held == old_ && !finished)) << n;
    for (const PowerLoss& loss : all_losses()) {
      MemoryFs later = memory.after_power_loss(loss);
      const std::string left = *read_text(later, kPath);
      EXPECT_TRUE(left == new_ || (left == old_ && !finished)) << n;
      ++states;
    }
  }
  EXPECT_GT(states, 60);
}

TEST_P(Rewrites, LeaveTheOldFileAloneAfterAnError) {
  for (const int error : {ENOSPC, EIO}) {
    bool finished = false;
    for (std::uint64_t n = first_write(root_); !finished; ++n) {
      MemoryFs memory = disk_with(root_);
      FaultFs faulty(memory, {.fail_at = n, .error_number = error});
      finished = strip(faulty).has_value();
      const std::string held = *read_text(memory, kPath);
      EXPECT_TRUE(held == new_ || (held == old_ && !finished)) << n;
      const auto names = memory.list(".");
      ASSERT_TRUE(names);
      EXPECT_THAT(*names, ElementsAre(kPath)) << n;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Rewrites, testing::Values(1, 40, 700));

TEST(Rewrite, DropsWhatFollowsTheArchive) {
  MemoryFs fs = disk_with(wrapped(5));
  ASSERT_TRUE((*fs.append(kPath))->write(as_byte_span("junk")));
  ASSERT_TRUE(strip(fs));
  const auto file = load(kPath, {}, fs);
  ASSERT_TRUE(file);
  EXPECT_THAT(file->warnings, testing::IsEmpty());
}

// The same bytes as loading, changing and saving; checksums are carried over.
TEST(Rewrite, EqualsSaveAndKeepsDamageVisible) {
  MemoryFs fs = disk_with(wrapped(5));
  const auto file = load(kPath, {.use_mmap = false}, fs);
  const auto edited = strip_prefix(file->root, {});
  ASSERT_TRUE(rewrite(*file, edited->root, "out.pt", {}, fs));
  ASSERT_TRUE(save("saved.pt", edited->root, {.archive_name = "out"}, fs));
  EXPECT_EQ(*read_text(fs, "out.pt"), *read_text(fs, "saved.pt"));

  std::string bytes = *read_text(fs, kPath);
  const float wanted = 3;
  bytes[bytes.find(
      std::string(reinterpret_cast<const char*>(&wanted), sizeof wanted))] ^= 1;
  ASSERT_TRUE(fs.remove(kPath));
  ASSERT_TRUE((*fs.create(kPath, 0644))->write(as_byte_span(bytes)));
  const auto damaged = load(kPath, {.use_mmap = false}, fs);
  ASSERT_TRUE(damaged);
  const auto copy = strip_prefix(damaged->root, {});
  ASSERT_TRUE(rewrite(*damaged, copy->root, "bad.pt", {}, fs));
  const auto report = verify("bad.pt", {}, fs);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->errors.size(), 1U);
  EXPECT_EQ(report->errors[0].detail, "E_CRC");
}

std::string content_of(const ExtraRecord& record) {
  const auto bytes = record.content->source->load();
  return bytes ? std::string(as_text(*bytes)) : bytes.error().detail;
}

// A note, bytes that no tensor uses, and a record of the frame.
std::string with_foreign_records() {
  MemoryFs fs = disk_with(wrapped(1));
  const std::string saved = *read_text(fs, kPath);
  auto zip = ZipReader::open(make_source(as_byte_span(saved)));
  EXPECT_TRUE(zip);
  ZipBytes made;
  std::vector<std::byte> scratch;
  for (const ZipRecord& record : zip->records()) {
    made.add(
        "root/" + record.name,
        std::string(as_text(*zip->read(record, scratch))));
    scratch.clear();
  }
  made.add("root/extra/notes.json", "{}");
  made.add("root/data/7", "unused");
  made.add("root/empty", "");
  return made.finish();
}

TEST(Rewrite, CarriesOverWhatIsNoPartOfTheValue) {
  for (const bool use_mmap : {false, true}) {
    MemoryFs fs;
    const std::string bytes = with_foreign_records();
    ASSERT_TRUE((*fs.create(kPath, 0644))->write(as_byte_span(bytes)));
    const auto before = load(kPath, {.use_mmap = use_mmap}, fs);
    ASSERT_TRUE(before);
    ASSERT_EQ(before->extra_records.size(), 3U);
    const auto edited = strip_prefix(before->root, {});
    ASSERT_TRUE(rewrite(
        *before,
        edited->root,
        kPath,
        {.archive_name = before->archive_name},
        fs));
    const auto file = load(kPath, {}, fs);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->archive_name, "root");
    EXPECT_THAT(file->warnings, testing::IsEmpty());
    ASSERT_EQ(file->extra_records.size(), 3U);
    EXPECT_EQ(file->extra_records[0].name, "extra/notes.json");
    EXPECT_EQ(content_of(file->extra_records[0]), "{}");
    EXPECT_EQ(file->extra_records[1].name, "data/7");
    EXPECT_EQ(content_of(file->extra_records[1]), "unused");
    EXPECT_EQ(file->extra_records[2].name, "empty");
    EXPECT_EQ(content_of(file->extra_records[2]), "");
    EXPECT_TRUE(verify(kPath, {}, fs)->is_sound());
  }
}

// A damaged note stays a damaged note.
TEST(Rewrite, KeepsTheChecksumOfExtraRecords) {
  MemoryFs fs;
  std::string bytes = with_foreign_records();
  bytes[bytes.find("unused")] ^= 1;
  ASSERT_TRUE((*fs.create(kPath, 0644))->write(as_byte_span(bytes)));
  ASSERT_TRUE(strip(fs));
  const auto report = verify(kPath, {}, fs);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->errors.size(), 1U);
  EXPECT_EQ(report->errors[0].detail, "E_CRC");
}

TEST(LockForEdit, IsHeldByOneAtATime) {
  MemoryFs fs = disk_with(wrapped(1));
  ASSERT_TRUE(save("d", wrapped(1), {.format = "dcp"}, fs));
  for (const char* path : {kPath.c_str(), "d"}) {
    auto lock = lock_for_edit(path, fs);
    ASSERT_TRUE(lock && *lock) << path;
    const auto second = lock_for_edit(path, fs);
    ASSERT_FALSE(second) << path;
    EXPECT_EQ(second.error().detail, "E_LOCKED");
    const auto file = load(path, {}, fs);
    ASSERT_TRUE(file);
    EXPECT_TRUE(rewrite(*file, file->root, path, {.lock = lock->get()}, fs))
        << path;
    lock->reset();
    EXPECT_TRUE(lock_for_edit(path, fs)) << path;
  }
  const auto none = lock_for_edit("missing", fs);
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, nullptr);
}

// The lock of a folder stays when its files are replaced, and keeps out those
// who save without reading, too.
TEST(LockForEdit, OfAFolderKeepsOutWriters) {
  MemoryFs fs;
  const SaveOptions dcp{.format = "dcp"};
  ASSERT_TRUE(save("d", wrapped(1), dcp, fs));
  {
    const auto lock = lock_for_edit("d", fs).value();
    const auto file = load("d", {}, fs).value();
    ASSERT_TRUE(rewrite(file, file.root, "d", {.lock = lock.get()}, fs));
    EXPECT_EQ(lock_for_edit("d", fs).error().detail, "E_LOCKED");
    const Status refused = save("d", wrapped(2), dcp, fs);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail, "E_LOCKED");
  }
  EXPECT_TRUE(save("d", wrapped(2), dcp, fs));
}

TEST(MergeRecords, TakesThoseOfBoth) {
  const auto record = [](const char* name, const char* text) {
    return ExtraRecord{
        .name = name,
        .content = storage_of(text, DType::kUInt8)};
  };
  const std::vector first{record("a", "1"), record("notes/b", "2")};
  const auto both = merge_records(first, {record("c", "3")});
  ASSERT_TRUE(both);
  ASSERT_EQ(both->size(), 3U);
  EXPECT_EQ((*both)[2].name, "c");
  // Letter case does not tell records apart.
  const std::vector second{record("Notes/B", "4")};
  const auto refused = merge_records(first, second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "E_KEY_COLLISION");
  const auto equal = merge_records(first, {record("notes/b", "2")});
  ASSERT_TRUE(equal) << to_string(equal.error());
  EXPECT_EQ(equal->size(), 2U);
  const auto no_text = merge_records(first, {record("\xff", "1")});
  ASSERT_FALSE(no_text);
  EXPECT_EQ(no_text.error().detail, "E_NAME");
  const auto replaced = merge_records(first, second, {.replace = true});
  ASSERT_TRUE(replaced);
  ASSERT_EQ(replaced->size(), 2U);
  EXPECT_EQ(content_of((*replaced)[1]), "4");
}

TEST(Rewrite, BlamesNoOutputForAFormatThatIsOnlyRead) {
  MemoryFs fs;
  const Status status = rewrite({.format = "tar"}, Value(1), "out.pt", {}, fs);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_NO_WRITER");
  EXPECT_EQ(status.error().path, "");
}

} // namespace
} // namespace lockstep::ckpt
