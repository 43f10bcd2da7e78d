// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/folder_lock.h"

#include <signal.h> // NOLINT(modernize-deprecated-headers): kill is POSIX
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <system_error>
#include <thread>

#include <gmock/gmock.h>

#include "lockstep/base/internal/row_file.h"
#include "lockstep/base/strings.h"
#include "tests/base/real_files.h"
#include "tests/support/fault_fs.h"
#include "tests/support/memory_fs.h"
#include "tests/support/no_locks.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using ::testing::StartsWith;

MemoryFs with_folder() {
  MemoryFs fs;
  fs.create_directories("run").value();
  return fs;
}

// The error of taking "run" while `owner` stands in the file.
std::string refusal(const std::string& owner) {
  MemoryFs fs = with_folder();
  fs.append("run/.lock").value()->write(as_byte_span(owner)).value();
  const auto held = fs.open_update("run/.lock").value();
  const auto refused = FolderLock::take(fs, "run");
  EXPECT_EQ(refused.error().detail, "E_LOCKED");
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  return refused.error().message;
}

TEST(FolderLock, LooksAtTheOwnerAndChangesNothing) {
  MemoryFs fs = with_folder();
  EXPECT_EQ(FolderLock::owner_of(fs, "run").held, FolderHeld::kNo);
  EXPECT_FALSE(fs.stat("run/.lock"));
  {
    const FolderLock lock = FolderLock::take(fs, "run").value();
    const FolderOwner owner = FolderLock::owner_of(fs, "run");
    EXPECT_EQ(owner.held, FolderHeld::kYes);
    EXPECT_THAT(owner.text, HasSubstr(format("pid {} on ", ::getpid())));
  }
  EXPECT_EQ(FolderLock::owner_of(fs, "run").text, "");
  fs.append("run/.lock").value()->write(as_byte_span("pid 1 on x")).value();
  const FolderOwner dead = FolderLock::owner_of(fs, "run");
  EXPECT_EQ(dead.held, FolderHeld::kNo);
  EXPECT_EQ(dead.text, "pid 1 on x");
}

TEST(FolderLock, WhatMayNotBeReadIsUnknown) {
  MemoryFs memory = with_folder();
  FaultFs fs(memory, {.fail_at = 0, .error_number = EACCES});
  const FolderOwner owner = FolderLock::owner_of(fs, "run");
  EXPECT_EQ(owner.held, FolderHeld::kUnknown);
}

TEST(FolderLock, OnlyOneHasTheFolder) {
  MemoryFs fs = with_folder();
  {
    const FolderLock first = FolderLock::take(fs, "run").value();
    EXPECT_EQ(first.stale_owner(), "");
    const auto second = FolderLock::take(fs, "run");
    ASSERT_FALSE(second);
    EXPECT_THAT(
        to_string(second.error()),
        MatchesRegex(
            "\\[fs\\.lock\\] run is in use by process [0-9]+ on .+ since "
            "[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+ UTC \\([0-9]+ s\\) "
            "\\(run/\\.lock\\)\\. Hint: wait until it ends, or choose another "
            "folder\\."));
    EXPECT_THAT(
        second.error().message,
        HasSubstr(format("process {} on ", ::getpid())));
  }
  EXPECT_EQ(read_text(fs, "run/.lock").value(), "");
  EXPECT_EQ(FolderLock::take(fs, "run")->stale_owner(), "");
  EXPECT_EQ(FolderLock::take(fs, "none").error().code, ErrorCode::kNotFound);
}

TEST(FolderLock, MovesWithItsObject) {
  MemoryFs fs = with_folder();
  fs.create_directories("other").value();
  FolderLock first = FolderLock::take(fs, "run").value();
  std::optional<FolderLock> second(std::move(first));
  EXPECT_FALSE(FolderLock::take(fs, "run"));
  second = FolderLock::take(fs, "other").value();
  EXPECT_TRUE(FolderLock::take(fs, "run"));
  EXPECT_FALSE(FolderLock::take(fs, "other"));
  second.reset();
  EXPECT_TRUE(FolderLock::take(fs, "other"));
}

TEST(FolderLock, TellsHowLongAgoAndCopesWithForeignText) {
  EXPECT_THAT(
      refusal("pid 123 on box since 2020-01-01 10:00:00 UTC\n"),
      MatchesRegex("run is in use by process 123 on box since 2020-01-01 "
                   "10:00:00 UTC \\([0-9]+ d\\)"));
  EXPECT_THAT(
      refusal("pid 1 on a since since 9999-12-31 23:59:59 UTC"),
      HasSubstr("process 1 on a since since 9999-12-31 23:59:59 UTC (0 s)"));
  EXPECT_EQ(refusal(""), "run is in use by another process");
  EXPECT_EQ(refusal("a\x1b[0m\nb"), "run is in use by a\\x1b[0m");
  for (const char* time :
       {"",
        "2020",
        "2020-13-01 10:00:00 UTC",
        "2020-01-01 10:00:00",
        "99999999999-01-01 10:00:00 UTC",
        "2020-01-01 10:00:00 UTC+1"}) {
    EXPECT_EQ(
        refusal(format("pid 1 on a since {}", time)),
        format("run is in use by process 1 on a since {}", time));
  }
}

TEST(FolderLock, GivesTheFolderBackIfItCannotWrite) {
  for (std::uint64_t index = 0; index < 7; ++index) {
    MemoryFs memory = with_folder();
    FaultFs fs(memory, {.fail_at = index});
    const bool only_reads = index == 3 || index == 4; // who had it before
    EXPECT_EQ(FolderLock::take(fs, "run").has_value(), only_reads) << index;
    const auto again = FolderLock::take(memory, "run");
    ASSERT_TRUE(again) << index;
    EXPECT_EQ(again->stale_owner(), "");
  }
}

TEST(FolderLock, WithoutLocksItIsTakenWithAWarningThatSaysSo) {
  MemoryFs fs = MemoryFs::without_locks();
  fs.create_directories("run").value();
  EXPECT_EQ(FolderLock::owner_of(fs, "run").held, FolderHeld::kNo);
  {
    const FolderLock first = FolderLock::take(fs, "run").value();
    EXPECT_EQ(
        first.warning(),
        "it cannot be locked, so that another run in it would go unnoticed: "
        "the file system knows no locks here: No locks available");
    const FolderOwner owner = FolderLock::owner_of(fs, "run");
    EXPECT_EQ(owner.held, FolderHeld::kUnknown);
    EXPECT_THAT(owner.text, HasSubstr(format("pid {} on ", ::getpid())));
    // Nobody knows whether the first is alive: it is no process that died.
    const FolderLock second = FolderLock::take(fs, "run").value();
    EXPECT_EQ(second.stale_owner(), "");
    EXPECT_THAT(
        second.warning(),
        MatchesRegex(format(
            "it cannot be locked, .+; process {} on .+ since .+ UTC "
            "\\([0-9]+ s\\) may still be in it",
            ::getpid())));
  }
  EXPECT_EQ(FolderLock::owner_of(fs, "run").held, FolderHeld::kNo);
}

using FolderLockRealTest = test::RealFiles;

class NoLocksTest : public FolderLockRealTest {
 protected:
  void SetUp() override {
    if (!test::can_make_locks_fail()) {
      GTEST_SKIP() << "nothing here can make locks fail";
    }
  }
};

// What every call that locks says, in one line each.
std::string lock_texts(FileSystem& fs, const std::string& folder) {
  const auto text = [](const auto& result) {
    return result ? "taken" : to_string(result.error());
  };
  const auto missing = [&](const auto& result) {
    return result && (*result)->missing_lock() != nullptr
               ? "without: " + to_string(*(*result)->missing_lock())
               : text(result);
  };
  const auto lock = FolderLock::take(fs, folder);
  const auto rows = RowFile::open(fs, folder + "/rows.csv");
  const auto is_locked = fs.is_locked(folder + "/.lock");
  return join(
      std::vector<std::string>{
          lock ? "folder: " + lock->warning() : text(lock),
          missing(fs.open_update(folder + "/rows.csv")),
          missing(fs.lock_directory(folder)),
          text(rows),
          text(is_locked)},
      "\n");
}

TEST_F(NoLocksTest, WhereThereAreNoLocksAllGoOnAndSaySo) {
  put(".lock", "");
  put("rows.csv", "");
  for (const int number : {ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL, ENOTTY, EBADF}) {
    const std::string reason = "the file system knows no locks here: " +
                               std::generic_category().message(number);
    const std::string texts = test::where_locks_fail(number, [&] {
      return lock_texts(fs_, dir_.path());
    });
    EXPECT_THAT(
        split(texts, '\n'),
        ElementsAre(
            "folder: it cannot be locked, so that another run in it would go "
            "unnoticed: " +
                reason,
            AllOf(StartsWith("without: [fs.lock] "), HasSubstr(reason)),
            AllOf(StartsWith("without: [fs.lock] "), HasSubstr(reason)),
            "taken",
            AllOf(StartsWith("[fs.lock] "), HasSubstr(reason))));
  }
}

TEST_F(NoLocksTest, AnyOtherErrorOfALockIsAnErrorWithItsText) {
  put(".lock", "");
  put("rows.csv", "");
  for (const int number : {EIO, EACCES, EPERM, ENOMEM, ESTALE}) {
    const std::string texts = test::where_locks_fail(number, [&] {
      return lock_texts(fs_, dir_.path());
    });
    EXPECT_THAT(
        split(texts, '\n'),
        AllOf(
            SizeIs(5),
            Each(StartsWith(
                "[fs.lock] " + std::generic_category().message(number)))));
  }
  const std::string held = test::where_locks_fail(EWOULDBLOCK, [&] {
    return FolderLock::take(fs_, dir_.path()).error().detail + " " +
           fs_.lock_directory(dir_.path()).error().detail;
  });
  EXPECT_EQ(held, "E_LOCKED E_LOCKED");
}

TEST_F(FolderLockRealTest, LookingKeepsNobodyFromTakingIt) {
  ASSERT_TRUE(FolderLock::take(fs_, dir_.path()));
  std::atomic<bool> is_done = false;
  std::atomic<std::uint64_t> looks = 0;
  const std::jthread looker([&] {
    while (!is_done) {
      static_cast<void>(FolderLock::owner_of(fs_, dir_.path()));
      ++looks;
    }
  });
  for (std::uint64_t taken = 0; taken < 1000 || looks < 1000; ++taken) {
    const auto lock = FolderLock::take(fs_, dir_.path());
    EXPECT_TRUE(lock) << taken;
    if (!lock) {
      break;
    }
    EXPECT_EQ(FolderLock::owner_of(fs_, dir_.path()).held, FolderHeld::kYes);
  }
  is_done = true;
}

TEST_F(FolderLockRealTest, AKilledProcessFreesTheFolderAndIsNamed) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const ::pid_t child = ::fork();
  if (child == 0) {
    const auto lock = FolderLock::take(fs_, dir_.path());
    const char answer = lock ? 'y' : 'n';
    static_cast<void>(::write(pipe[1], &answer, 1) == 1);
    while (true) {
      ::pause();
    }
  }
  char answer = 0;
  ASSERT_EQ(::read(pipe[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  const auto refused = FolderLock::take(fs_, dir_.path());
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr(format("{} is in use by process {} on ", dir_.path(), child)));
  {
    const FolderLock lock = FolderLock::take(fs_, dir_.path()).value();
    EXPECT_THAT(
        lock.stale_owner(),
        MatchesRegex(format("pid {} on .+ since .+ UTC", child)));
  }
  EXPECT_EQ(FolderLock::take(fs_, dir_.path())->stale_owner(), "");
}

} // namespace
} // namespace lockstep
