// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/dist/process_group.h"

#include <cstdlib>
#include <future>

#include <gmock/gmock.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/dist/thread_ranks.h"
#include "lockstep/dist/world.h"
#include "tests/support/scratch_dir.h"

namespace lockstep::dist {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

class RankCount : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Ranks, RankCount, testing::Values(1, 2, 3, 5));

TEST_P(RankCount, CollectivesGiveWhatTheySay) {
  const int size = GetParam();
  const auto errors = run_thread_ranks(size, [size](const ProcessGroup& group) {
    at::Tensor mine = torch::full({3}, group.rank() + 1.0);
    group.all_reduce(mine);
    EXPECT_TRUE(torch::equal(mine, torch::full({3}, size * (size + 1) / 2.0)));

    at::Tensor least = torch::full({2}, group.rank());
    group.all_reduce(least, ReduceOp::kMin);
    EXPECT_EQ(least.sum().item<int>(), 0);

    at::Tensor given = torch::full({2}, group.rank());
    group.broadcast(given, size - 1);
    EXPECT_EQ(given[0].item<int>(), size - 1);

    const auto all = group.all_gather(torch::full({2}, group.rank()));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(all[static_cast<std::size_t>(rank)][1].item<int>(), rank);
    }
    group.barrier();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(RankCount, ReduceScatterGivesEachRankItsSum) {
  const int size = GetParam();
  const auto errors = run_thread_ranks(size, [size](const ProcessGroup& group) {
    std::vector<at::Tensor> inputs;
    inputs.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      inputs.push_back(torch::full({2}, 10.0 * rank + group.rank()));
    }
    const double expected =
        10.0 * group.rank() * size + size * (size - 1) / 2.0;
    EXPECT_EQ(group.reduce_scatter(inputs)[1].item<double>(), expected);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(RankCount, BytesOfDifferentSizesAreGathered) {
  const int size = GetParam();
  const auto errors = run_thread_ranks(size, [size](const ProcessGroup& group) {
    const std::vector<std::byte> mine(
        static_cast<std::size_t>(group.rank() * 3),
        static_cast<std::byte>(group.rank()));
    const auto all = group.all_gather_bytes(mine);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(size));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      EXPECT_EQ(
          all[rank],
          std::vector<std::byte>(rank * 3, static_cast<std::byte>(rank)));
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(RankCount, AWorldSumsInTheOrderOfTheRanks) {
  const int size = GetParam();
  const auto errors = run_thread_ranks(size, [size](const ProcessGroup& group) {
    GroupWorld world(group);
    EXPECT_EQ(world.size(), size);
    std::vector<double> values{0.1 * (group.rank() + 1), 1.0};
    double expected = 0.0;
    for (int rank = 0; rank < size; ++rank) {
      expected += 0.1 * (rank + 1);
    }
    world.sum(values);
    EXPECT_EQ(values[0], expected); // to the last bit
    EXPECT_EQ(values[1], size);
    EXPECT_EQ(world.any(group.rank() == size - 1), true);
    EXPECT_FALSE(world.any(false));
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(group.rank() == 0 ? 5 : 100),
        static_cast<std::byte>(group.rank()));
    world.broadcast(bytes);
    EXPECT_EQ(bytes, std::vector<std::byte>(5));
    world.barrier();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

Error error_of(const InitOptions& options) {
  try {
    init_process_group(options);
  } catch (const Exception& error) {
    return error.error();
  }
  destroy_process_group();
  return {.message = "no error"};
}

TEST(ProcessGroup, RanksThatDoNotComeAreNamed) {
  const test::ScratchDir folder;
  const Error error = error_of(
      {.init_method = "file://" + (folder / "store"),
       .rank = 1,
       .world_size = 4,
       .timeout = std::chrono::milliseconds(200)});
  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  EXPECT_THAT(
      error.message,
      HasSubstr("rank 1 waited 0.2 s for ranks 0, 2, 3"));
}

TEST(ProcessGroup, VersionsThatDifferAreNamed) {
  const test::ScratchDir folder;
  const std::string other = "Lockstep 0.0.1, LibTorch 1.0";
  const c10::intrusive_ptr<c10d::Store> store =
      c10::make_intrusive<c10d::FileStore>(folder / "store", 2);
  store->set(
      "default_pg/lockstep/versions/0",
      std::vector<std::uint8_t>(other.begin(), other.end()));
  const Error error = error_of(
      {.init_method = "file://" + (folder / "store"),
       .rank = 1,
       .world_size = 2,
       .timeout = std::chrono::seconds(5)});
  EXPECT_EQ(error.code, ErrorCode::kMismatch);
  EXPECT_THAT(
      error.message,
      AllOf(HasSubstr("rank 0: " + other), HasSubstr("rank 1: Lockstep")));
}

// It may hold the store, in which the others are about to read why it ends.
TEST(ProcessGroup, RankZeroLeavesWhenAllHaveRead) {
  const test::ScratchDir folder;
  const std::string other = "Lockstep 0.0.1, LibTorch 1.0";
  // This thread is rank 1.
  const c10::intrusive_ptr<c10d::Store> store =
      c10::make_intrusive<c10d::FileStore>(folder / "store", 2);
  store->set(
      "default_pg/lockstep/versions/1",
      std::vector<std::uint8_t>(other.begin(), other.end()));
  auto rank_zero = std::async(std::launch::async, [&] {
    return error_of(
        {.init_method = "file://" + (folder / "store"),
         .rank = 0,
         .world_size = 2,
         .timeout = std::chrono::seconds(60)});
  });
  const std::string readers = "default_pg/lockstep/versions/readers";
  store->wait({readers}); // rank 0 has read
  EXPECT_EQ(
      rank_zero.wait_for(std::chrono::milliseconds(100)),
      std::future_status::timeout);
  EXPECT_EQ(store->add(readers, 1), 2);
  store->set("default_pg/lockstep/versions/read", std::vector<std::uint8_t>{1});
  EXPECT_EQ(rank_zero.get().code, ErrorCode::kMismatch);
}

TEST(ProcessGroup, AStoreThatHasEndedIsNamed) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  const std::string address = format("tcp://127.0.0.1:{}", store->getPort());
  auto rank_one = std::async(std::launch::async, [&] {
    return error_of(
        {.init_method = address,
         .rank = 1,
         .world_size = 2,
         .timeout = std::chrono::seconds(60)});
  });
  store->wait({"default_pg/lockstep/versions/1"}); // now it waits for rank 0
  store.reset();
  const Error error = rank_one.get();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable) << error.message;
  EXPECT_EQ(error.detail, "E_RANKS_LATE");
  EXPECT_THAT(
      error.message,
      HasSubstr("which rank 0 holds, does not answer any more"));
  EXPECT_THAT(error.hint, HasSubstr("that holds it has ended"));
}

TEST(ProcessGroup, ACollectiveThatTheOthersLeaveSaysWhich) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        group.barrier();
        if (group.rank() == 0) {
          at::Tensor lonely = torch::ones({2});
          group.all_reduce(lonely);
        }
      },
      {.timeout = std::chrono::milliseconds(500)});
  EXPECT_THAT(
      errors[0],
      AllOf(
          HasSubstr("[dist.all_reduce]"),
          HasSubstr("collective 2 (all_reduce) of rank 0 of 2 did not end"),
          HasSubstr("rank 1 has left the job"),
          HasSubstr("its last collective: 1 (barrier)")));
  EXPECT_THAT(errors[1], IsEmpty());
}

// Gloo's work for it has no future.
TEST(ProcessGroup, AReduceScatterThatTheOthersLeaveSaysWho) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        group.barrier();
        if (group.rank() == 1) {
          const at::Tensor part = torch::ones({2});
          static_cast<void>(group.reduce_scatter({part, part}));
        }
      },
      {.timeout = std::chrono::seconds(60)});
  EXPECT_THAT(errors[0], IsEmpty());
  EXPECT_THAT(errors[1], HasSubstr("rank 0 has left the job"));
}

TEST(ProcessGroup, AnotherCallIsNamedOnBothSides) {
  const auto errors = run_thread_ranks(
      2,
      [](const ProcessGroup& group) {
        at::Tensor mine = torch::ones({2 + group.rank()});
        group.all_reduce(mine);
      },
      {.timeout = std::chrono::seconds(60)});
  EXPECT_THAT(
      errors[0],
      HasSubstr(
          "rank 1 does something else: its collective 1 (all_reduce) of Float "
          "(3,), here 1 (all_reduce) of Float (2,)"));
  EXPECT_THAT(
      errors[1],
      HasSubstr(
          "rank 0 does something else: its collective 1 (all_reduce) of Float "
          "(2,), here 1 (all_reduce) of Float (3,)"));
}

struct OtherCall {
  void (*run)(const ProcessGroup& group) = nullptr;
  const char* text = nullptr;
};

TEST(ProcessGroup, AnotherKindOfTheSameCallIsNamed) {
  for (const OtherCall& call : std::initializer_list<OtherCall>{
           {[](const ProcessGroup& group) {
              at::Tensor mine = torch::ones({2});
              group.all_reduce(
                  mine,
                  group.rank() == 0 ? ReduceOp::kSum : ReduceOp::kMax);
            },
            "1 (all_reduce max) of Float (2,), here 1 (all_reduce) of Float "
            "(2,)"},
           {[](const ProcessGroup& group) {
              at::Tensor mine = torch::ones({2});
              group.broadcast(mine, group.rank());
            },
            "1 (broadcast from rank 1) of Float (2,), here 1 (broadcast) of "
            "Float (2,)"},
           {[](const ProcessGroup& group) {
              at::Tensor mine = torch::ones({2});
              mine = group.rank() == 0 ? mine : mine.to_sparse();
              group.all_reduce(mine);
            },
            "1 (all_reduce) of sparse Float (2,), here 1 (all_reduce) of Float "
            "(2,)"}}) {
    const auto errors = run_thread_ranks(
        2,
        call.run,
        {.backend = "gloo", .timeout = std::chrono::seconds(60)});
    EXPECT_THAT(
        errors[0],
        HasSubstr(
            std::string("rank 1 does something else: its collective ") +
            call.text));
    EXPECT_THAT(errors[1], HasSubstr("rank 0 does something else"));
  }
}

/// Sets variables for one test; init_process_group reads them.
// NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs
class Variables {
 public:
  explicit Variables(
      const std::vector<std::pair<std::string, std::string>>& values) {
    clear();
    for (const auto& [name, value] : values) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Variables() {
    clear();
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  static void clear() {
    for (const char* name :
         {"RANK",
          "WORLD_SIZE",
          "LOCAL_RANK",
          "LOCAL_WORLD_SIZE",
          "MASTER_ADDR",
          "MASTER_PORT"}) {
      ::unsetenv(name);
    }
  }
};
// NOLINTEND(concurrency-mt-unsafe)

TEST(Init, AProgramThatNothingStartedIsAGroupOfOne) {
  const Variables none({});
  EXPECT_FALSE(is_initialized());
  init_process_group();
  EXPECT_TRUE(is_initialized());
  EXPECT_EQ(get_rank(), 0);
  EXPECT_EQ(get_world_size(), 1);
  at::Tensor one = torch::ones({2});
  all_reduce(one);
  EXPECT_TRUE(torch::equal(one, torch::ones({2})));
  EXPECT_THAT(
      error_of({}).message,
      HasSubstr("trying to initialize the default process group twice!"));
  destroy_process_group();
  EXPECT_FALSE(is_initialized());
}

TEST(Init, WithoutAGroupItSaysPythonsWords) {
  for (const auto& call :
       {std::function<void()>([] { barrier(); }),
        std::function<void()>([] { static_cast<void>(get_rank()); }),
        std::function<void()>([] { destroy_process_group(); })}) {
    try {
      call();
      ADD_FAILURE() << "there is no group";
    } catch (const Exception& error) {
      EXPECT_THAT(
          error.what(),
          HasSubstr(
              "Default process group has not been initialized, please make "
              "sure to call init_process_group."));
    }
  }
}

TEST(Init, AnEnvironmentThatIsIncompleteIsNamedInPythonsWords) {
  constexpr const char* kText =
      "Error initializing torch.distributed using env:// rendezvous: "
      "environment variable {} expected, but not set";
  const std::vector<std::pair<std::string, std::string>> rank{
      {"RANK", "0"},
      {"WORLD_SIZE", "2"},
      {"LOCAL_RANK", "0"},
      {"LOCAL_WORLD_SIZE", "2"}};
  {
    const Variables set(rank);
    EXPECT_THAT(error_of({}).message, HasSubstr(format(kText, "MASTER_ADDR")));
  }
  auto with_host = rank;
  with_host.emplace_back("MASTER_ADDR", "127.0.0.1");
  {
    const Variables set(with_host);
    EXPECT_THAT(error_of({}).message, HasSubstr(format(kText, "MASTER_PORT")));
  }
  with_host.emplace_back("MASTER_PORT", "70000");
  {
    const Variables set(with_host);
    EXPECT_THAT(
        error_of({}).message,
        HasSubstr("port must have value from 0 to 65535 but was 70000."));
  }
}

TEST(Init, WrongOptionsAreNamed) {
  const Variables none({});
  EXPECT_THAT(
      error_of({.init_method = "etcd://x"}).message,
      HasSubstr("unknown init_method 'etcd://x'"));
  EXPECT_THAT(
      error_of({.init_method = "tcp://localhost", .rank = 0, .world_size = 1})
          .message,
      HasSubstr("'tcp://localhost' names no port"));
  EXPECT_THAT(
      error_of({.init_method = "tcp://localhost:1"}).message,
      HasSubstr("needs the rank and the number of ranks"));
  EXPECT_THAT(error_of({.backend = "smoke"}).message, HasSubstr("'smoke'"));
}

TEST(Init, AFileIsAMeetingPlace) {
  const Variables none({});
  const test::ScratchDir folder;
  const InitOptions options{
      .init_method = "file://" + (folder / "store"),
      .rank = 0,
      .world_size = 1};
  EXPECT_EQ(error_of(options).message, "no error");
}

} // namespace
} // namespace lockstep::dist
