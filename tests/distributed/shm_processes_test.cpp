// SPDX-License-Identifier: BSD-3-Clause
//
// The backend for ranks of one host, where ranks are processes that may end in
// any way.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/process_group.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::dist {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Ranks as processes, which may end in any way. What each has thrown, by rank.
class ProcessRanks {
 public:
  ProcessRanks(
      int size,
      std::chrono::milliseconds timeout,
      const std::function<void(const ProcessGroup&)>& body) {
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(::fork());
      if (ranks_.back() == 0) {
        run({.backend = "shm",
             .init_method = "file://" + (folder_ / "store"),
             .rank = rank,
             .world_size = size,
             .timeout = timeout},
            body);
      }
    }
  }
  ~ProcessRanks() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ::kill(ranks_[rank], SIGKILL);
      error_of(rank);
    }
  }
  ProcessRanks(const ProcessRanks&) = delete;
  ProcessRanks& operator=(const ProcessRanks&) = delete;

  /// Waits for its end.
  std::string error_of(std::size_t rank) {
    ::waitpid(ranks_[rank], nullptr, 0);
    std::ifstream file(error_file(static_cast<int>(rank)));
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  [[nodiscard]] std::string error_file(int rank) const {
    return folder_ / format("error{}", rank);
  }

  [[noreturn]] void run(
      const InitOptions& options,
      const std::function<void(const ProcessGroup&)>& body) const {
    at::set_num_threads(1);
    try {
      body(init_process_group(options));
    } catch (const std::exception& error) {
      std::ofstream(error_file(options.rank)) << error.what();
    }
    ::_exit(0);
  }

  test::ScratchDir folder_;
  std::vector<pid_t> ranks_ = {};
};

void reduce_for_ever(const ProcessGroup& group, int rank, int signal) {
  at::Tensor tensor = torch::ones({100'000});
  for (int i = 0;; ++i) {
    if (group.rank() == rank && i == 20) {
      ::raise(signal);
    }
    group.all_reduce(tensor);
  }
}

TEST(ShmProcesses, ARankThatIsKilledIsNamed) {
  for (const int signal : {SIGKILL, SIGTERM}) {
    ProcessRanks ranks(
        3,
        std::chrono::minutes(10),
        [signal](const ProcessGroup& group) {
          reduce_for_ever(group, 1, signal);
        });
    for (const std::size_t rank : {0U, 2U}) {
      EXPECT_THAT(
          ranks.error_of(rank),
          AllOf(
              HasSubstr(format(
                  "of rank {} of "
                  "3 did not end",
                  rank)),
              HasSubstr("the process of rank 1 has ended")));
    }
  }
}

TEST(ShmProcesses, ARankThatStopsIsNamedWhenItIsLate) {
  ProcessRanks ranks(
      3,
      std::chrono::milliseconds(700),
      [](const ProcessGroup& group) { reduce_for_ever(group, 2, SIGSTOP); });
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_THAT(
        ranks.error_of(rank),
        HasSubstr("timed out: rank 2 did not come within 0.7 s"));
  }
}

InitOptions one_of_two(const test::ScratchDir& folder, int rank) {
  return {
      .backend = "shm",
      .init_method = "file://" + (folder / "store"),
      .rank = rank,
      .world_size = 2,
      .timeout = std::chrono::seconds(30)};
}

// Its store outlives a group of which there is a handle.
TEST(ShmProcesses, AnotherGroupReadsNothingOfTheFirst) {
  const test::ScratchDir folder;
  ProcessRanks ranks(
      2,
      std::chrono::seconds(30),
      [&](const ProcessGroup& first) {
        const int rank = first.rank();
        std::vector<ProcessGroup> kept;
        for (int time = 0; time < 3; ++time) {
          destroy_process_group();
          if (rank == 1) { // rank 0 would find what it has said before
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
          }
          kept.push_back(init_process_group(one_of_two(folder, rank)));
          at::Tensor sum = torch::ones({700'001});
          kept.back().all_reduce(sum);
          if (sum.ne(2).any().item<bool>()) {
            throw std::runtime_error("a wrong sum");
          }
        }
      });
  EXPECT_EQ(ranks.error_of(0), "");
  EXPECT_EQ(ranks.error_of(1), "");
}

/// Forks, and waits for the end of the fork.
void have_a_fork_that_exits() {
  const pid_t fork = ::fork();
  if (fork == 0) {
    std::exit(0); // NOLINT(concurrency-mt-unsafe): its only thread
  }
  for (int looks = 0; ::waitpid(fork, nullptr, WNOHANG) == 0; ++looks) {
    if (looks == 2000) {
      ::kill(fork, SIGKILL);
      ::waitpid(fork, nullptr, 0);
      throw std::runtime_error("the fork does not end");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(ShmProcesses, AForkThatExitsEndsNothingOfItsRank) {
  const test::ScratchDir folder;
  ProcessRanks ranks(
      2,
      std::chrono::seconds(30),
      [&](const ProcessGroup& first) {
        const int rank = first.rank();
        destroy_process_group();
        init_process_group(one_of_two(folder, rank)); // the only handle
        if (rank == 0) {
          have_a_fork_that_exits();
        }
        barrier();
        barrier();
      });
  EXPECT_EQ(ranks.error_of(0), "");
  EXPECT_EQ(ranks.error_of(1), "");
}

TEST(ShmProcesses, AClosedPipeEndsNoRank) {
  ProcessRanks ranks(
      2,
      std::chrono::seconds(30),
      [](const ProcessGroup& group) {
        std::array<int, 2> pipe{};
        EXPECT_EQ(::pipe(pipe.data()), 0);
        ::close(pipe[0]);
        if (::write(pipe[1], "x", 1) != -1 || errno != EPIPE) {
          throw std::runtime_error("expected EPIPE");
        }
        group.barrier();
        throw std::runtime_error("lives");
      });
  EXPECT_EQ(ranks.error_of(0), "lives");
  EXPECT_EQ(ranks.error_of(1), "lives");
}

} // namespace
} // namespace lockstep::dist
