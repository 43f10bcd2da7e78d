// SPDX-License-Identifier: BSD-3-Clause
//
// Which backend a group takes: `InitOptions::backend`, and what the ranks find.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <future>

#include <gmock/gmock.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/cuda.h>

#include "lockstep/base/error.h"
#include "lockstep/base/internal/descriptor.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/distributed/group/backend_choice.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/tensor/internal/compat.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/thread_ranks.h"

namespace lockstep::dist {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

/// Rank 0 finds no memory as long as it lives.
class NoMemory {
 public:
  NoMemory() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
  }
  ~NoMemory() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

 private:
  rlimit before_ = {};
  sighandler_t handler_ = nullptr;
};

TEST(ChoiceOfBackend, IsGlooWhereMemoryCannotBeShared) {
  const NoMemory no_memory;
  const auto errors = run_thread_ranks(2, [](const ProcessGroup& group) {
    EXPECT_EQ(group.backend(), "gloo");
    group.barrier();
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_THAT(
      run_thread_ranks(2, [](const ProcessGroup&) {}, {.backend = "shm"}),
      Each(AllOf(
          HasSubstr("rank 0 cannot share memory: no "),
          HasSubstr("Hint: use the backend gloo"))));
}

TEST(ChoiceOfBackend, IsWhatAllRanksAskFor) {
  for (const char* name : {"shm", "gloo"}) {
    const auto errors = run_thread_ranks(
        2,
        [name](const ProcessGroup& group) { EXPECT_EQ(group.backend(), name); },
        {.backend = format("cpu:{},cuda:{}", name, name)});
    EXPECT_THAT(errors, Each(IsEmpty()));
  }
}

/// Rank 1 of two, which init_process_group makes of this process; what rank 0
/// says, the test says.
class RankOne {
 public:
  RankOne() {
    says(
        "versions",
        format(
            "Lockstep {}, LibTorch {}, backend shm",
            kVersion,
            torch_library_version()));
  }
  void says(const std::string& key, const std::string& text) {
    store_->set(
        "default_pg/lockstep/" + key + "/0",
        std::vector<std::uint8_t>(text.begin(), text.end()));
  }
  /// Of rank 1.
  std::string said(const std::string& key) {
    const auto bytes = store_->get("default_pg/lockstep/" + key + "/1");
    return {bytes.begin(), bytes.end()};
  }
  [[nodiscard]] Error failure() const {
    try {
      init_process_group(
          {.backend = "shm",
           .init_method = "file://" + (folder_ / "store"),
           .rank = 1,
           .world_size = 2});
    } catch (const Exception& error) {
      return error.error();
    }
    destroy_process_group();
    return {.message = "no error"};
  }

 private:
  test::ScratchDir folder_;
  c10::intrusive_ptr<c10d::Store> store_ =
      c10::make_intrusive<c10d::FileStore>(folder_ / "store", 2);
};

TEST(ChoiceOfBackend, OtherHostsAreNamed) {
  RankOne rank;
  rank.says("shm/guests", "another-host 1 3 4");
  const Error error = rank.failure();
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  EXPECT_THAT(
      error.message,
      HasSubstr("ranks 0 and 1 cannot share memory: another host"));
}

// As what a process has left in a store whose number is another's by now.
TEST(ChoiceOfBackend, AFileThatIsNoMemoryOfARankIsNotMapped) {
  RankOne rank;
  auto error = std::async(std::launch::async, [&] { return rank.failure(); });
  const std::string guest = rank.said("shm/guests");
  const Descriptor file(::memfd_create("other", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 1 << 30), 0);
  rank.says(
      "shm/guests",
      format(
          "{} {} {} -1",
          guest.substr(0, guest.find(' ')),
          static_cast<std::int64_t>(::getpid()),
          file.get()));
  EXPECT_THAT(
      rank.said("shm/entered"),
      HasSubstr("is not the memory of a rank"));
  rank.says("shm/entered", "");
  EXPECT_THAT(
      error.get().message,
      HasSubstr("rank 1 cannot share memory: file"));
}

struct NameRow {
  const char* text;
  BackendChoice choice;
  const char* printed;
};

TEST(ChoiceOfBackend, FollowsPythonsNames) {
  for (const NameRow& row : std::initializer_list<NameRow>{
           {"", {.host = "", .has_nccl = true}, "cpu:,cuda:nccl"},
           {"gloo", {.host = "gloo"}, "gloo"},
           {"shm", {.host = "shm"}, "shm"},
           {"cpu:gloo", {.host = "gloo"}, "gloo"},
           {"cpu:gloo,cuda:gloo", {.host = "gloo"}, "gloo"},
           {"cuda:gloo,cpu:gloo",
            {.host = "gloo", .host_device = "cuda"},
            "gloo"},
           {"nccl", {.host = "nccl", .has_nccl = true}, "nccl"},
           {"cuda:nccl", {.host = "nccl", .has_nccl = true}, "nccl"},
           {"cpu:gloo,cuda:nccl",
            {.host = "gloo", .has_nccl = true},
            "cpu:gloo,cuda:nccl"},
           {"cuda:nccl,cpu:shm",
            {.host = "shm", .has_nccl = true},
            "cpu:shm,cuda:nccl"}}) {
    const BackendChoice choice = parse_backend(row.text, false, std::nullopt);
    EXPECT_EQ(choice, row.choice) << row.text;
    EXPECT_EQ(choice.text(), row.printed) << row.text;
  }
}

TEST(ChoiceOfBackend, WithoutANameFollowsTheDevices) {
  const Error none{.code = ErrorCode::kUnavailable, .message = "no GPUs found"};
  EXPECT_EQ(parse_backend("", false, none), BackendChoice());
  EXPECT_EQ(parse_backend("", true, none), BackendChoice());
  EXPECT_EQ(parse_backend("", true, std::nullopt).text(), "nccl");
  EXPECT_THROW(parse_backend("nccl", false, none), Exception);
}

TEST(ChoiceOfBackend, WrongNamesAreRefused) {
  const auto error_of = [](const std::string& backend) {
    return run_thread_ranks(1, [](const ProcessGroup&) {}, {.backend = backend})
        .front();
  };
  EXPECT_THAT(error_of("cpu:gloo,cuda:shm"), HasSubstr("names two backends"));
  EXPECT_THAT(
      error_of("cpu:nccl"),
      HasSubstr("NCCL has no tensors of the device 'cpu'"));
  if (torch::cuda::device_count() == 0) {
    EXPECT_THAT(
        error_of("cpu:gloo,cuda:nccl"),
        AllOf(
            AnyOf(
                HasSubstr("Distributed package doesn't have NCCL built in"),
                HasSubstr("ProcessGroupNCCL is only supported with GPUs, no "
                          "GPUs found!")),
            HasSubstr("Hint: use the backend gloo")));
  }
  EXPECT_THAT(error_of("tpu:gloo"), HasSubstr("unknown device 'tpu'"));
  EXPECT_THAT(error_of("cpu:smoke"), HasSubstr("unknown backend 'smoke'"));
  EXPECT_THAT(
      run_thread_ranks(
          1,
          [](const ProcessGroup&) {},
          {.backend = "shm", .has_python_ranks = true})
          .front(),
      HasSubstr("Python's ranks do not know the backend shm"));
}

} // namespace
} // namespace lockstep::dist
