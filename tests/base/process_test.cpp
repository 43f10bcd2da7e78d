// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/internal/process.h"

#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <gmock/gmock.h>

namespace lockstep {
namespace {

bool can_be_read(const Descriptor& handle) {
  pollfd entry{handle.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(ProcessHandle, CanBeReadOnceTheProcessHasEnded) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t pid = ::fork();
  if (pid == 0) { // until the pipe closes
    ::close(ends[1]);
    char byte = 0;
    ::_exit(::read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  const Descriptor handle = process_handle(pid);
  ASSERT_TRUE(handle);
  EXPECT_FALSE(can_be_read(handle));
  ::close(ends[0]);
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(can_be_read(handle));
  EXPECT_FALSE(process_handle(pid)); // nobody has the number by now
  EXPECT_EQ(errno, ESRCH);
}

TEST(HostId, IsOneWordAndTheSameForAChild) {
  const std::string id = host_id();
  EXPECT_THAT(id, testing::MatchesRegex("[0-9a-f-]+/[0-9]+"));
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(host_id() == id ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

TEST(HostName, IsWhatTheSystemSays) {
  std::array<char, 256> name{};
  ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
  EXPECT_EQ(host_name(), name.data());
}

TEST(UsableCores, AreThoseThatTheProcessMayUse) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(usable_cores(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

} // namespace
} // namespace lockstep
