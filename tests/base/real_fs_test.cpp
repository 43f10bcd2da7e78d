// SPDX-License-Identifier: BSD-3-Clause
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gmock/gmock.h>

#include "lockstep/base/internal/atomic_file.h"
#include "tests/base/real_files.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string text_of(ByteSpan bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += static_cast<char>(byte);
  }
  return text;
}

using RealFsTest = test::RealFiles;

TEST_F(RealFsTest, ASignalLeavesNoTemporaryFile) {
  const std::string path = put("m.pth", "old");
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          remove_temporaries_on_signals();
          const auto killed = [number](WritableFile& file) {
            Status written = file.write(as_byte_span("half"));
            ::raise(number);
            return written;
          };
          static_cast<void>(write_file_atomically(fs_, path, killed));
        },
        testing::KilledBySignal(number),
        "");
    EXPECT_THAT(*fs_.list(dir_.path()), ElementsAre("m.pth"));
    EXPECT_EQ(get(path), "old");
  }
}

TEST_F(RealFsTest, AFileBeyondTheLimitOfItsSizeIsAnError) {
  const std::string path = put("m.pth", "old");
  EXPECT_EXIT(
      {
        remove_temporaries_on_signals();
        rlimit limit = {};
        limit.rlim_cur = 100;
        limit.rlim_max = 100;
        ::setrlimit(RLIMIT_FSIZE, &limit);
        const Status saved =
            write_file_atomically(fs_, path, std::string(200, 'a'));
        ::_exit(!saved && saved.error().detail == "E_NO_SPACE" ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "");
  EXPECT_THAT(*fs_.list(dir_.path()), ElementsAre("m.pth"));
  EXPECT_EQ(get(path), "old");
}

TEST_F(RealFsTest, ReadsBackWhatWasWritten) {
  const std::string path = put("a", "hello");
  EXPECT_EQ(get(path), "hello");
  EXPECT_EQ(fs_.stat(path)->size, 5U);
  EXPECT_EQ(fs_.stat(path)->kind, FileInfo::Kind::kFile);
  EXPECT_GT(fs_.stat(path)->modified, 0);
  std::array<std::byte, 3> middle = {};
  ASSERT_TRUE(fs_.open_read(path).value()->read_at(1, middle));
  EXPECT_EQ(text_of(middle), "ell");
}

TEST_F(RealFsTest, ReportsTheEndOfAFileAsTruncated) {
  std::array<std::byte, 3> out = {};
  const auto file = fs_.open_read(put("a", "hello")).value();
  const Status past_end = file->read_at(4, out);
  ASSERT_FALSE(past_end);
  EXPECT_EQ(past_end.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(past_end.error().detail, "E_TRUNCATED");
  EXPECT_EQ(past_end.error().offset, 5U);
  EXPECT_FALSE(file->read_at(~0ULL, out));
}

TEST_F(RealFsTest, NamesThePathThatIsMissing) {
  const auto missing = fs_.open_read(dir_ / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(
      to_string(missing.error()),
      "[fs.open] No such file or directory (" + (dir_ / "missing") + ").");
}

TEST_F(RealFsTest, RefusesWhatIsNotARegularFileWithoutWaiting) {
  const std::string fifo = dir_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string loop = dir_ / "loop";
  ASSERT_EQ(::symlink(loop.c_str(), loop.c_str()), 0);
  for (const std::string& path :
       {dir_.path(), fifo, loop, std::string("/dev/zero")}) {
    EXPECT_EQ(fs_.open_read(path).error().detail, "E_NOT_REGULAR") << path;
    EXPECT_EQ(fs_.map(path).error().code, ErrorCode::kUnsupported) << path;
  }
  EXPECT_FALSE(fs_.append(fifo));
}

TEST_F(RealFsTest, MapsPrivately) {
  const std::string path = put("a", "hello");
  const auto mapping = fs_.map(path).value();
  const ByteSpan bytes = mapping->bytes();
  // Whoever owns the bytes may write to them: tensors share the pages.
  const_cast<std::byte&>(bytes[0]) = std::byte{'J'};
  EXPECT_EQ(text_of(mapping->bytes()), "Jello");
  EXPECT_EQ(get(path), "hello");
  EXPECT_THAT(fs_.map(put("empty", "")).value()->bytes(), IsEmpty());
}

TEST_F(RealFsTest, AppendsTruncatesRenamesAndLists) {
  const std::string path = put("a", "one ");
  fs_.append(path).value()->write(as_byte_span("two")).value();
  EXPECT_EQ(get(path), "one two");
  ASSERT_TRUE(fs_.truncate(path, 3));
  ASSERT_TRUE(fs_.rename(path, dir_ / "b"));
  ASSERT_TRUE(fs_.create_directories(dir_ / "x/y"));
  EXPECT_THAT(fs_.list(dir_.path()).value(), ElementsAre("b", "x"));
  ASSERT_TRUE(fs_.remove(dir_ / "b"));
  EXPECT_EQ(fs_.stat(path).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(fs_.list(dir_ / "none").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(fs_.sync_directory(dir_.path()));
  EXPECT_GT(fs_.free_space(dir_.path()).value(), 0U);
}

TEST_F(RealFsTest, CreateRefusesAFileThatExists) {
  const auto twice = fs_.create(put("a", ""), 0644);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().detail, "E_EXISTS");
}

TEST_F(RealFsTest, ReportsAFullDisk) {
  const auto file = fs_.append("/dev/full").value();
  const Status full = file->write(as_byte_span("x"));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().detail, "E_NO_SPACE");
  EXPECT_EQ(full.error().code, ErrorCode::kIo);
  EXPECT_THAT(to_string(full.error()), HasSubstr("No space left on device"));
}

TEST_F(RealFsTest, AtomicWriteReplacesAndKeepsTheMode) {
  const std::string path = put("a", "old");
  ASSERT_TRUE(fs_.chmod(path, 0604));
  ASSERT_TRUE(write_file_atomically(fs_, path, "new"));
  EXPECT_EQ(get(path), "new");
  EXPECT_EQ(fs_.stat(path)->mode, 0604U);
  EXPECT_THAT(fs_.list(dir_.path()).value(), ElementsAre("a"));
}

TEST_F(RealFsTest, AtomicWriteGivesANewFileTheUsualMode) {
  const ::mode_t mask = ::umask(027);
  const Status status = write_file_atomically(fs_, dir_ / "a", "new");
  ::umask(mask);
  ASSERT_TRUE(status);
  EXPECT_EQ(fs_.stat(dir_ / "a")->mode, 0640U);
}

TEST_F(RealFsTest, AtomicWriteFollowsLinksEvenToAMissingFile) {
  ASSERT_TRUE(fs_.create_directories(dir_ / "real"));
  ASSERT_EQ(::symlink("real/file", (dir_ / "link").c_str()), 0);
  for (const char* text : {"first", "second"}) {
    ASSERT_TRUE(write_file_atomically(fs_, dir_ / "link", text));
    EXPECT_EQ(get(dir_ / "real/file"), text);
  }
  EXPECT_EQ(fs_.resolve(dir_ / "link").value(), dir_ / "real/file");
  EXPECT_THAT(fs_.list(dir_ / "real").value(), ElementsAre("file"));
}

TEST_F(RealFsTest, AtomicWriteTakesALongNameAndRefusesADirectory) {
  const std::string path = dir_ / std::string(255, 'n');
  EXPECT_TRUE(write_file_atomically(fs_, path, "x"));
  const Status refused = write_file_atomically(fs_, dir_.path(), "x");
  EXPECT_EQ(refused.error().detail, "E_NOT_REGULAR");
}

TEST_F(RealFsTest, AtomicWriteNamesTheTargetInItsErrors) {
  const std::string path = dir_ / "none/file";
  const Status status = write_file_atomically(fs_, path, "x");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(status.error().path, path);
}

TEST_F(RealFsTest, AtomicWriteRefusesWhenTheDiskIsTooSmall) {
  const Status status = write_file_atomically(
      fs_,
      put("a", "old"),
      [](WritableFile&) { return Status(); },
      {.expected_bytes = 1ULL << 60});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "E_NO_SPACE");
  EXPECT_THAT(
      status.error().message,
      HasSubstr("1024.0 PiB needed (1152921504606846976 bytes), "));
  EXPECT_EQ(get(dir_ / "a"), "old");
}

TEST_F(RealFsTest, AtomicWriteCleansUpWhenTheWriterThrows) {
  const auto fill = [](WritableFile& file) -> Status {
    file.write(as_byte_span("half")).value();
    raise({.message = "stop"});
  };
  EXPECT_THROW(
      static_cast<void>(write_file_atomically(fs_, put("a", "old"), fill)),
      Exception);
  EXPECT_EQ(get(dir_ / "a"), "old");
  EXPECT_THAT(fs_.list(dir_.path()).value(), ElementsAre("a"));
}

TEST_F(RealFsTest, StaleTemporariesOfDeadProcessesGo) {
  const std::string stale = ".m.pth.tmp.2000000000.0123456789abcdef";
  const std::string living =
      ".m.pth.tmp." + std::to_string(::getpid()) + ".0123456789abcdef";
  const std::string foreign = ".m.pth.tmp.2000000000.notours";
  for (const std::string& name : {stale, living, foreign}) {
    put(name, "x");
  }
  const auto removed = remove_stale_temporaries(fs_, dir_.path()).value();
  EXPECT_THAT(removed, ElementsAre(stale));
  EXPECT_THAT(
      fs_.list(dir_.path()).value(),
      ::testing::UnorderedElementsAre(foreign, living));
}

TEST_F(RealFsTest, ATemporaryOfAProcessThatHasEndedGoes) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  siginfo_t ended = {}; // it stays a zombie
  ASSERT_EQ(
      ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT),
      0);
  const std::string stale =
      ".m.pth.tmp." + std::to_string(child) + ".0123456789abcdef";
  put(stale, "x");
  EXPECT_FALSE(is_process_alive(child));
  EXPECT_TRUE(is_process_alive(::getppid()));
  const auto removed = remove_stale_temporaries(fs_, dir_.path());
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_THAT(removed.value(), ElementsAre(stale));
}

TEST(Paths, SplitIntoFolderAndName) {
  EXPECT_EQ(parent_directory("dir/name.ext"), "dir");
  EXPECT_EQ(parent_directory("name"), ".");
  EXPECT_EQ(parent_directory("/name"), "/");
  EXPECT_EQ(base_name("dir/name.ext"), "name.ext");
  EXPECT_EQ(base_name("name"), "name");
}

} // namespace
} // namespace lockstep
