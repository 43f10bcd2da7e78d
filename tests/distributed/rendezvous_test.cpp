// SPDX-License-Identifier: BSD-3-Clause
//
// How ranks find each other, and what is said where they do not.
#include <cstdlib>
#include <future>

#include <gmock/gmock.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/distributed/process_group.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

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
