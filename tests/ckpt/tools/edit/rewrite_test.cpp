// SPDX-License-Identifier: BSD-3-Clause
//
// An edit in place dies before each of its operations, and after each of
// these the power goes in six ways: what is found must be the old archive or
// the new one.
#include "lockstep/ckpt/tools/edit/rewrite.h"

#include <cerrno>

#include <gmock/gmock.h>

#include "lockstep/base/fault_fs.h"
#include "lockstep/base/memory_fs.h"
#include "lockstep/base/strings.h"
#include "lockstep/ckpt/byte_source.h"
#include "lockstep/ckpt/tools/edit/key_edit.h"
#include "lockstep/ckpt/tools/verify/verify.h"
#include "tests/ckpt/value_fixture.h"

namespace lockstep::ckpt {
namespace {

using testing::ElementsAre;

const std::string kPath = "m.pt";

// Names so long that the new directory takes several steps.
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

Result<RewriteReport> strip(FileSystem& fs, bool may_append = true) {
  LOCKSTEP_ASSIGN(const Checkpoint file, load(kPath, {.use_mmap = false}, fs));
  LOCKSTEP_ASSIGN(const Edited edited, strip_prefix(file.root, {}));
  return rewrite(
      file,
      edited.root,
      kPath,
      {.input = "./m.pt", .may_append = may_append},
      fs);
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

// "old", "new", or what is wrong with the file.
std::string state_of(FileSystem& fs) {
  const auto file = load(kPath, {}, fs);
  if (!file) {
    return to_string(file.error());
  }
  const auto report = verify(kPath, {}, fs);
  if (!report || !report->is_sound()) {
    return "damaged";
  }
  const Dict& weights = *file->root.find("state_dict")->as_dict();
  for (std::size_t i = 0; i < weights.items.size(); ++i) {
    const auto bytes = weights.items[i].second.as_tensor()->storage->source;
    const auto loaded = bytes->load();
    float stored = -1;
    if (loaded && loaded->size() == sizeof stored) {
      std::memcpy(&stored, loaded->data(), sizeof stored);
    }
    if (stored != static_cast<float>(i)) {
      return format("tensor {} has other bytes", i);
    }
  }
  const std::string& key = *weights.items.at(0).first.as_string();
  return key.starts_with("module.") ? "old" : "new";
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

class EditInPlace : public testing::TestWithParam<int> {};

TEST_P(EditInPlace, AppendsAndKeepsEveryByteBefore) {
  MemoryFs fs = disk_with(wrapped(GetParam()));
  const std::string before = *read_text(fs, kPath);
  const auto report = strip(fs);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->method, RewriteMethod::kAppended);
  const std::string after = *read_text(fs, kPath);
  EXPECT_EQ(after.size(), before.size() + report->bytes);
  EXPECT_TRUE(after.starts_with(before));
  EXPECT_EQ(state_of(fs), "new");
  const auto file = load(kPath, {}, fs);
  ASSERT_TRUE(file);
  EXPECT_THAT(file->warnings, ElementsAre());
  // The end records are in one sector.
  EXPECT_LE((after.size() - 98) % kSectorBytes, kSectorBytes - 98);
}

TEST_P(EditInPlace, SurvivesEveryKillAndPowerCut) {
  const Value root = wrapped(GetParam());
  int states = 0;
  bool finished = false;
  for (std::uint64_t n = first_write(root); !finished; ++n) {
    MemoryFs memory = disk_with(root);
    FaultFs faulty(
        memory,
        {.fail_at = n,
         .failures = FaultPlan::kNever,
         .short_write_bytes = 70'000});
    finished = strip(faulty).has_value();
    const std::string killed = state_of(memory);
    EXPECT_TRUE(killed == "new" || (killed == "old" && !finished))
        << n << ": " << killed;
    for (const PowerLoss& loss : all_losses()) {
      MemoryFs later = memory.after_power_loss(loss);
      const std::string state = state_of(later);
      EXPECT_TRUE(state == "old" || state == "new") << n << ": " << state;
      EXPECT_TRUE(!finished || state == "new") << n;
      ++states;
    }
  }
  EXPECT_GT(states, 60);
}

TEST_P(EditInPlace, PutsTheOldLengthBackAfterAnError) {
  const Value root = wrapped(GetParam());
  for (const int error : {ENOSPC, EIO}) {
    bool finished = false;
    int longer = 0;
    for (std::uint64_t n = first_write(root); !finished; ++n) {
      MemoryFs memory = disk_with(root);
      const std::string before = *read_text(memory, kPath);
      FaultFs faulty(memory, {.fail_at = n, .error_number = error});
      finished = strip(faulty).has_value();
      const bool is_back = *read_text(memory, kPath) == before;
      const std::string state = state_of(memory);
      EXPECT_TRUE(state == "new" || state == "old") << n << ": " << state;
      EXPECT_TRUE(!finished || state == "new") << n;
      longer += state == "old" && !is_back ? 1 : 0;
    }
    EXPECT_EQ(longer, 1); // only if the last write itself fails
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EditInPlace, testing::Values(1, 40, 700));

TEST(EditInPlaceTwice, WorksOnItsOwnResult) {
  MemoryFs fs = disk_with(wrapped(20));
  ASSERT_TRUE(strip(fs));
  const auto file = load(kPath, {.use_mmap = false}, fs);
  ASSERT_TRUE(file);
  const auto again = add_prefix(file->root, {});
  ASSERT_TRUE(again);
  const auto report = rewrite(*file, again->root, kPath, {.input = kPath}, fs);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->method, RewriteMethod::kAppended);
  EXPECT_EQ(state_of(fs), "old");
}

TEST(EditInPlaceTwice, WorksAfterAnUnfinishedOne) {
  MemoryFs fs = disk_with(wrapped(700));
  const std::string before = *read_text(fs, kPath);
  // Dies right before the last write.
  for (std::uint64_t n = first_write(wrapped(700));
       read_text(fs, kPath)->size() == before.size();
       ++n) {
    MemoryFs tried = disk_with(wrapped(700));
    FaultFs faulty(tried, {.fail_at = n, .failures = FaultPlan::kNever});
    ASSERT_FALSE(strip(faulty)) << n;
    fs = std::move(tried);
  }
  const auto file = load(kPath, {}, fs);
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_EQ(file->warnings.size(), 1U);
  EXPECT_THAT(file->warnings[0], testing::StartsWith("W_UNFINISHED_EDIT"));
  EXPECT_EQ(state_of(fs), "old");
  ASSERT_TRUE(strip(fs));
  EXPECT_EQ(state_of(fs), "new");
}

// Bytes before the first record that are no replaced record stay refused.
TEST(EditInPlaceTwice, DoesNotOpenTheDoorToForeignBytes) {
  MemoryFs fs = disk_with(wrapped(2));
  ASSERT_TRUE(strip(fs));
  std::string bytes = *read_text(fs, kPath);
  const std::size_t name = bytes.find("data.pkl");
  bytes.replace(name, 8, "evil.pkl");
  const auto file = load(make_source(as_byte_span(bytes)), "m.pt");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().detail, "E_PREFIX");
}

TEST(Rewrite, WritesANewFileWhereItMayNotAppend) {
  MemoryFs fs = disk_with(wrapped(5));
  const auto report = strip(fs, false);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->method, RewriteMethod::kWritten);
  EXPECT_EQ(report->bytes, read_text(fs, kPath)->size());
  EXPECT_EQ(state_of(fs), "new");
}

TEST(Rewrite, WritesANewFileIfBytesFollowTheArchive) {
  MemoryFs fs = disk_with(wrapped(5));
  const auto file = fs.append(kPath);
  ASSERT_TRUE((*file)->write(as_byte_span("junk")));
  const auto report = strip(fs);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->method, RewriteMethod::kWritten);
  EXPECT_EQ(state_of(fs), "new");
}

// The same bytes as loading, changing and saving; checksums are carried over.
TEST(Rewrite, EqualsSaveAndKeepsDamageVisible) {
  MemoryFs fs = disk_with(wrapped(5));
  const auto file = load(kPath, {.use_mmap = false}, fs);
  const auto edited = strip_prefix(file->root, {});
  ASSERT_TRUE(rewrite(*file, edited->root, "out.pt", {.input = kPath}, fs));
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
  ASSERT_TRUE(rewrite(*damaged, copy->root, "bad.pt", {.input = kPath}, fs));
  const auto report = verify("bad.pt", {}, fs);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->errors.size(), 1U);
  EXPECT_EQ(report->errors[0].detail, "E_CRC");
}

} // namespace
} // namespace lockstep::ckpt
