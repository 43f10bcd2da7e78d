// SPDX-License-Identifier: BSD-3-Clause
//
// The bytes. tests/train/event_observer_test.cpp lets TensorBoard read them.
#include "lockstep/report/event_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <gmock/gmock.h>

#include "lockstep/base/strings.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"

namespace lockstep::report {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::array kLoss{Scalar{.tag = "loss", .value = 1.5F}};

class EventFileTest : public ::testing::Test {
 protected:
  EventFileTest() {
    fs_.create_directories("run").value();
  }
  std::vector<std::string> names() {
    return fs_.list("run").value();
  }
  // The records of the only file, without lengths and checksums.
  std::vector<std::string> events() {
    const std::string text = read_text(fs_, "run/" + names().at(0)).value();
    std::vector<std::string> events;
    std::size_t at = 0;
    while (at < text.size()) {
      std::uint64_t length = 0;
      std::memcpy(&length, text.data() + at, sizeof(length));
      events.push_back(text.substr(at + 12, length));
      at += 16 + length;
    }
    EXPECT_EQ(at, text.size());
    return events;
  }
  MemoryFs fs_;
};

TEST(MaskedCrc32c, HasThePublishedValues) {
  EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5U);
  const std::string header("\x18\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(masked_crc32c(header), 0x224b7fa3U);
}

TEST_F(EventFileTest, BeginsWithItsVersionAndTheStepThatComes) {
  const EventFile file = EventFile::create(fs_, "run", 300).value();
  const auto found = events();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].substr(9), std::string("\x10\0\x1a\rbrain.Event:2", 17));
  EXPECT_EQ(found[1].substr(9), "\x10\xac\x02\x3a\x02\x08\x01");
}

TEST_F(EventFileTest, AScalarIsATagAndAFloat) {
  EventFile file = EventFile::create(fs_, "run", 1).value();
  file.add(2, kLoss).value();
  const auto found = events();
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_EQ(
      found[2].substr(9),
      std::string("\x10\x02\x2a\r\n\x0b\n\x04loss\x15\0\0\xc0\x3f", 17));
}

TEST_F(EventFileTest, ANewFileComesAfterTheOthersInTheSameSecond) {
  std::vector<std::string> made;
  for (int i = 0; i < 3; ++i) {
    const EventFile file = EventFile::create(fs_, "run", 1).value();
    for (const std::string& name : names()) {
      if (std::ranges::find(made, name) == made.end()) {
        made.push_back(name);
      }
    }
  }
  EXPECT_EQ(made, names()) << "sorted as they were made";
  EXPECT_THAT(made, SizeIs(3));
  EXPECT_THAT(made[0], StartsWith(kEventFilePrefix));
}

TEST_F(EventFileTest, WhatAFailingDiskDidNotTakeFollows) {
  FaultFs probe(fs_);
  static_cast<void>(EventFile::create(probe, "run", 1).value());
  fs_.remove("run/" + names().at(0)).value();

  FaultFs faulty(
      fs_,
      {.fail_at = probe.operations(), .failures = 1, .short_write_bytes = 7});
  EventFile file = EventFile::create(faulty, "run", 1).value();
  EXPECT_FALSE(file.add(1, kLoss));
  EXPECT_TRUE(file.add(2, kLoss));
  EXPECT_THAT(events(), SizeIs(4));
}

// After a failed fsync the kernel may have dropped what it held: another one
// that succeeds is no proof of what came before.
TEST_F(EventFileTest, ASyncThatSucceedsHasBroughtAllToTheDisk) {
  int failed = 0;
  bool has_failed = true;
  for (std::uint64_t index = 0; has_failed; ++index) {
    fs_ = MemoryFs();
    fs_.create_directories("run").value();
    FaultFs faulty(fs_, {.fail_at = index});
    auto file = EventFile::create(faulty, "run", 1);
    for (int i = 0; i < 3 && file; ++i) {
      static_cast<void>(file->add(i, kLoss));
      if (!file->sync()) {
        ++failed;
        continue;
      }
      EXPECT_THAT(events(), SizeIs(3 + i)) << index;
      const std::string path = "run/" + names().at(0);
      MemoryFs later = fs_.after_power_loss({});
      ASSERT_TRUE(later.stat(path)) << index;
      EXPECT_EQ(read_text(later, path).value(), read_text(fs_, path).value())
          << "after operation " << index << " had failed";
    }
    has_failed = faulty.operations() > index;
  }
  EXPECT_GE(failed, 3); // each fsync was one of them
}

TEST_F(EventFileTest, NoFolderIsAnError) {
  const auto file = EventFile::create(fs_, "elsewhere", 1);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().path, HasSubstr("elsewhere"));
}

} // namespace
} // namespace lockstep::report
