// SPDX-License-Identifier: BSD-3-Clause
//
// What is rescued from a file that holds parts of two checkpoints, or whose
// local headers and directory disagree, is of one file.
#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "lockstep/ckpt/inspect.h"
#include "tests/ckpt/pickle/pickle_fixture.h"
#include "tests/ckpt/value_fixture.h"
#include "tests/ckpt/zip/zip_fixture.h"
#include "tests/support/memory_fs.h"

namespace lockstep::ckpt {
namespace {

using testing::Each;
using testing::Field;
using testing::HasSubstr;

struct Shape {
  float value = 0;
  std::size_t tensors = 6;
  std::size_t numel = 100;
};

class SalvageMixed : public testing::Test {
 protected:
  // A checkpoint whose tensors hold `value`, and so does its pickle.
  std::string checkpoint(const Shape& shape) {
    Dict dict;
    dict.items.emplace_back("epoch", Value(std::int64_t(shape.value)));
    for (std::size_t i = 0; i < shape.tensors; ++i) {
      dict.items.emplace_back(
          format("w{}", i),
          floats(std::vector<float>(shape.numel, shape.value)));
    }
    EXPECT_TRUE(save("in.pt", Value(std::move(dict)), {}, disk_));
    return *read_text(disk_, "in.pt");
  }
  SalvageReport rescue(const std::string& bytes) {
    (void)disk_.remove("out.pt");
    const auto source = make_source(as_byte_span(bytes));
    auto report = salvage(source, "out.pt", {}, {}, disk_);
    EXPECT_TRUE(report) << to_string(report.error());
    return report ? *std::move(report) : SalvageReport{};
  }
  // The tensors of the copy, all of which hold `value`.
  std::size_t count_copies_of(float value) {
    const auto copy = load("out.pt", {}, disk_);
    EXPECT_TRUE(copy) << to_string(copy.error());
    std::size_t count = 0;
    const auto visit = [&](const std::string& name, const Tensor& tensor) {
      const auto bytes = tensor.storage->source->load();
      float first = 0;
      std::memcpy(&first, bytes->data(), sizeof(first));
      EXPECT_EQ(first, value) << name;
      ++count;
    };
    EXPECT_TRUE(for_each_tensor(copy->root, visit));
    return count;
  }
  MemoryFs disk_;
};

// Where the payload of `record` starts, behind a header and its padding.
std::size_t payload_of(const std::string& bytes, const std::string& record) {
  return (bytes.find("in/" + record) + record.size() + 7 + 63) / 64 * 64;
}

TEST_F(SalvageMixed, TakesNothingOfTheOlderFileUnderANewerOne) {
  const std::string newer = checkpoint({.value = 2});
  for (const std::size_t numel : {100U, 120U}) {
    const std::string older = checkpoint({.value = 1, .numel = numel});
    const std::size_t cut = payload_of(newer, "data/3") + 8;
    const auto report = rescue(newer.substr(0, cut) + older.substr(cut));
    EXPECT_TRUE(report.is_without_directory);
    EXPECT_EQ(report.rescued, 3U);
    ASSERT_EQ(report.lost.size(), 3U);
    EXPECT_THAT(report.lost[1].reason, HasSubstr("of another file"));
    EXPECT_THAT(report.lost[2].reason, HasSubstr("of another file"));
    EXPECT_EQ(count_copies_of(2), 3U);
  }
}

// Without a directory only its size tells that a record is not the one.
TEST_F(SalvageMixed, RefusesARecordThatIsLongerThanItsTensor) {
  const std::string newer = checkpoint({.value = 2});
  const std::string older = checkpoint({.value = 1, .numel = 120});
  const std::size_t cut = payload_of(newer, "data/3") + 8;
  const std::string mixed = newer.substr(0, cut) + older.substr(cut);
  const auto report = rescue(mixed.substr(0, mixed.size() - 100));
  EXPECT_EQ(report.rescued, 3U);
  ASSERT_EQ(report.lost.size(), 3U);
  EXPECT_THAT(
      report.lost[2].reason,
      HasSubstr("of another file; expected 400 bytes, got 480"));
  EXPECT_EQ(count_copies_of(2), 3U);
}

TEST_F(SalvageMixed, RescuesAShortFileOverALongerOne) {
  const std::string newer = checkpoint({.value = 2, .tensors = 3});
  const std::string older = checkpoint({.value = 1});
  const auto report = rescue(newer + older.substr(newer.size()));
  EXPECT_TRUE(report.lost.empty());
  EXPECT_EQ(count_copies_of(2), 3U);
  EXPECT_FALSE(report.lost_records.empty());
  EXPECT_THAT(
      report.lost_records,
      Each(Field(&LostPart::reason, HasSubstr("of another file"))));
}

TEST_F(SalvageMixed, RescuesTheLastOfTwoFilesAndSaysSo) {
  const std::string first = checkpoint({.value = 1, .tensors = 2});
  const std::string last = checkpoint({.value = 2});
  const auto report = rescue(first + last);
  EXPECT_EQ(report.rescued, 6U);
  EXPECT_EQ(report.foreign_bytes, first.size());
  EXPECT_FALSE(report.is_without_directory);
  ASSERT_EQ(report.lost_records.size(), 1U);
  EXPECT_EQ(report.lost_records[0].name, "in/");
  EXPECT_THAT(report.lost_records[0].reason, HasSubstr("another archive"));
  EXPECT_EQ(count_copies_of(2), 6U);
}

// Most writers need no record of 64 bits at the end.
TEST_F(SalvageMixed, RescuesTheLastOfTwoSmallArchives) {
  ZipBytes zip;
  zip.add("a/data.pkl", Pickle().op('}').stop().bytes());
  zip.add("a/version", "3\n");
  const std::string archive = zip.finish();
  const auto report = rescue(archive + archive);
  EXPECT_EQ(report.foreign_bytes, archive.size());
  EXPECT_EQ(report.lost_records.size(), 1U);
}

// Of two names, the pickle knows one.
TEST_F(SalvageMixed, ReadsARecordOfWhichOneNameIsWrong) {
  const std::string sound = checkpoint({.value = 1});
  for (const std::string name : {"data.pkl", "in/data/3"}) {
    for (const std::size_t at : {sound.find(name), sound.rfind(name)}) {
      for (const std::size_t letter : {std::size_t{1}, name.size() - 1}) {
        std::string bytes = sound;
        bytes[at + letter] = 'x';
        const auto report = rescue(bytes);
        EXPECT_EQ(report.rescued, 6U) << name << letter;
        EXPECT_TRUE(report.lost_records.empty()) << name << letter;
        EXPECT_FALSE(report.is_without_directory);
        EXPECT_EQ(count_copies_of(1), 6U);
      }
    }
  }
}

} // namespace
} // namespace lockstep::ckpt
