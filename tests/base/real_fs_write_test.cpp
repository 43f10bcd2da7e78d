// SPDX-License-Identifier: BSD-3-Clause
//
// Writing at an offset, copying between files, locks, and what a replaced file
// keeps.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "tests/base/real_files.h"
#include "tests/support/memory_fs.h"

namespace lockstep {
namespace {

using RealFsWriteTest = test::RealFiles;

TEST_F(RealFsWriteTest, WritesAtAnOffsetAndFillsGapsWithZeros) {
  MemoryFs memory;
  memory.create("a", 0644).value()->write(as_byte_span("hello")).value();
  const std::string path = put("a", "hello");
  const std::vector<std::pair<FileSystem*, std::string>> both{
      {&fs_, path},
      {&memory, "a"}};
  for (const auto& [fs, name] : both) {
    const auto file = fs->open_update(name).value();
    ASSERT_TRUE(file->write_at(1, as_byte_span("EL")));
    ASSERT_TRUE(file->write_at(7, as_byte_span("!")));
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(file->close());
    EXPECT_EQ(read_text(*fs, name).value(), std::string("hELlo\0\0!", 8));
  }
  EXPECT_EQ(fs_.open_update(dir_ / "none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(fs_.open_update(dir_.path()).error().detail, "E_NOT_REGULAR");
}

TEST_F(RealFsWriteTest, OneUpdateAtATime) {
  const std::string path = put("a", "hello");
  auto first = fs_.open_update(path).value();
  EXPECT_EQ(fs_.open_update(path).error().detail, "E_LOCKED");
  first.reset();
  EXPECT_TRUE(fs_.open_update(path));
}

TEST_F(RealFsWriteTest, OneHoldsADirectoryAtATime) {
  const std::string real = dir_ / "d";
  MemoryFs memory;
  const std::array<FileSystem*, 2> both{&fs_, &memory};
  for (FileSystem* fs : both) {
    const std::string path = fs == &fs_ ? real : "d";
    EXPECT_EQ(fs->lock_directory(path).error().code, ErrorCode::kNotFound);
    ASSERT_TRUE(fs->create_directories(path));
    auto first = fs->lock_directory(path);
    ASSERT_TRUE(first);
    EXPECT_EQ(fs->lock_directory(path + "/.").error().detail, "E_LOCKED");
    first->reset();
    EXPECT_TRUE(fs->lock_directory(path));
  }
}

// Whoever opened the file before another one took its name, and got the lock
// after that, would count on from an old number.
TEST_F(RealFsWriteTest, OfReplacementsUnderTheLockNoneIsLost) {
  const std::string path = put("a", "0");
  std::atomic<int> counted = 0;
  const auto count = [&] {
    for (int i = 0; i < 1000; ++i) {
      const auto lock = fs_.open_update(path);
      if (!lock) {
        EXPECT_EQ(lock.error().detail, "E_LOCKED");
        continue;
      }
      const int next = std::stoi(get(path)) + 1;
      write_file_atomically(fs_, path, std::to_string(next), {.durable = false})
          .value();
      ++counted;
    }
  };
  std::array<std::thread, 4> threads;
  for (std::thread& thread : threads) {
    thread = std::thread(count);
  }
  std::ranges::for_each(threads, &std::thread::join);
  EXPECT_EQ(get(path), std::to_string(counted));
}

TEST_F(RealFsWriteTest, CopiesARangeOfAnotherFile) {
  const std::string big(3'000'000, 'x');
  const std::string path = put("from", "abc" + big + "end");
  MemoryFs memory;
  memory.create("m", 0644).value()->write(as_byte_span("abcdef")).value();
  const auto source = fs_.open_read(path).value();
  const auto other = memory.open_read("m").value();
  const auto target = fs_.create(dir_ / "to", 0644).value();
  ASSERT_TRUE(target->write(as_byte_span("<")));
  ASSERT_TRUE(target->copy_from(*source, 2, 3'000'004));
  ASSERT_TRUE(target->copy_from(*other, 1, 3)); // read and written
  ASSERT_TRUE(target->write(as_byte_span(">")));
  EXPECT_EQ(get(dir_ / "to"), "<c" + big + "end" + "bcd>");
  const Status beyond = target->copy_from(*source, 3'000'000, 10);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().detail, "E_TRUNCATED");
}

TEST_F(RealFsWriteTest, CopiesFromPageToPage) {
  std::string big;
  big.resize(20'000'000, 'x');
  const auto source = fs_.open_read(put("from", big + "end")).value();
  const auto target = fs_.create(dir_ / "to", 0644).value();
  ASSERT_TRUE(target->copy_from(*source, 4096, big.size() + 3 - 4096));
  EXPECT_TRUE(get(dir_ / "to") == big.substr(4096) + "end");
  const Status beyond = fs_.create(dir_ / "beyond", 0644)
                            .value()
                            ->copy_from(*source, 8192, big.size());
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().detail, "E_TRUNCATED");
}

// The kernel does not copy to a file that is open for appending.
TEST_F(RealFsWriteTest, CopiesToTheEndOfAFile) {
  const auto source = fs_.open_read(put("from", "0123456789")).value();
  const auto target = fs_.append(put("to", "before ")).value();
  ASSERT_TRUE(target->copy_from(*source, 2, 5));
  ASSERT_TRUE(target->copy_from(*source, 0, 1));
  EXPECT_EQ(get(dir_ / "to"), "before 234560");
}

// What the target refuses in the middle of a copy is an error, not an end.
TEST_F(RealFsWriteTest, TellsWhenTheTargetCannotGrow) {
  const auto source =
      fs_.open_read(put("from", std::string(3'000'000, 'x'))).value();
  const auto target = fs_.create(dir_ / "to", 0644).value();
  struct ::rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  const struct ::rlimit small = {
      .rlim_cur = 2'000'000,
      .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = target->copy_from(*source, 64, 2'900'000);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, ignored);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_EQ(status.error().op, "fs.write");
}

// Pages of an open file that the disk has not been told to write; none if the
// kernel cannot tell (Linux 6.5 and later can).
std::optional<std::uint64_t> dirty_pages(const std::string& path) {
  constexpr long kCachestat = 451;
  const std::array<std::uint64_t, 2> whole_file{};
  std::array<std::uint64_t, 5>
      counts{}; // of which the second is of dirty pages
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const long result =
      ::syscall(kCachestat, file, whole_file.data(), counts.data(), 0U);
  ::close(file);
  return result == 0 ? std::optional(counts[1]) : std::nullopt;
}

TEST_F(RealFsWriteTest, DurableFilesGoToTheDiskWhileTheyGrow) {
  std::string text(6'000'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(i % 251);
  }
  const auto source = fs_.open_read(put("from", text)).value();
  std::optional<std::uint64_t> dirty;
  ASSERT_TRUE(write_file_atomically(
      fs_,
      dir_ / "to",
      [&](WritableFile& file) -> Status {
        for (int i = 0; i < 3; ++i) {
          LOCKSTEP_TRY(file.write(as_byte_span(text).first(5'000'001)));
          LOCKSTEP_TRY(file.copy_from(*source, 7, 5'999'000));
        }
        const auto names = fs_.list(dir_.path()).value(); // "." comes first
        dirty = dirty_pages(dir_ / names.front());
        return {};
      }));
  std::string wanted;
  for (int i = 0; i < 3; ++i) {
    wanted += text.substr(0, 5'000'001) + text.substr(7, 5'999'000);
  }
  EXPECT_TRUE(get(dir_ / "to") == wanted);
  EXPECT_LT(dirty.value_or(0), wanted.size() / 4096 / 2);
}

TEST_F(RealFsWriteTest, ReservesRoomWithoutChangingTheSize) {
  const auto file = fs_.create(dir_ / "a", 0644).value();
  ASSERT_TRUE(file->reserve(1 << 20));
  ASSERT_TRUE(file->write(as_byte_span("x")));
  EXPECT_EQ(fs_.stat(dir_ / "a")->size, 1U);
}

// An access list with an entry for user 12345, as the kernel stores it.
constexpr auto kAccessList = std::to_array<unsigned char>(
    {2,    0,    0,    0,    1,  0, 6, 0, 0xFF, 0xFF, 0xFF, 0xFF, 2,  0, 4, 0,
     0x39, 0x30, 0,    0,    4,  0, 4, 0, 0xFF, 0xFF, 0xFF, 0xFF, 16, 0, 4, 0,
     0xFF, 0xFF, 0xFF, 0xFF, 32, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF});

TEST_F(RealFsWriteTest, AReplacedFileKeepsModeGroupAndAttributes) {
  const std::string path = put("a", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  // Only where this user and this file system allow it.
  const bool has_group = ::chown(path.c_str(), 12345, 54321) == 0;
  const bool has_list = ::setxattr(
                            path.c_str(),
                            "system.posix_acl_access",
                            kAccessList.data(),
                            kAccessList.size(),
                            0) == 0;
  const bool has_note =
      ::setxattr(path.c_str(), "user.note", "ours", 4, 0) == 0;
  ASSERT_TRUE(write_file_atomically(fs_, path, "new"));
  EXPECT_EQ(get(path), "new");
  std::array<char, 8> note{};
  EXPECT_EQ(
      ::getxattr(path.c_str(), "user.note", note.data(), note.size()),
      has_note ? 4 : -1);
  EXPECT_STREQ(note.data(), has_note ? "ours" : "");
  struct ::stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
  EXPECT_EQ(status.st_uid, has_group ? 12345U : ::geteuid());
  EXPECT_EQ(status.st_gid, has_group ? 54321U : ::getegid());
  std::array<unsigned char, 100> list{};
  const ssize_t size = ::getxattr(
      path.c_str(),
      "system.posix_acl_access",
      list.data(),
      list.size());
  EXPECT_EQ(size, has_list ? std::ssize(kAccessList) : -1);
}

} // namespace
} // namespace lockstep
