// SPDX-License-Identifier: BSD-3-Clause
//
// Which backend a group takes: `InitOptions::backend`, and what the ranks find.
#include <sys/resource.h>

#include <csignal>

#include <gmock/gmock.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/cuda.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/base/version.h"
#include "lockstep/dist/backend_choice.h"
#include "lockstep/dist/process_group.h"
#include "lockstep/dist/thread_ranks.h"
#include "lockstep/tensor/compat.h"
#include "tests/support/scratch_dir.h"

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

TEST(ChoiceOfBackend, OtherHostsAreNamed) {
  const test::ScratchDir folder;
  const c10::intrusive_ptr<c10d::Store> store =
      c10::make_intrusive<c10d::FileStore>(folder / "store", 2);
  const auto says = [&](const std::string& key, const std::string& text) {
    store->set(
        "default_pg/lockstep/" + key + "/0",
        std::vector<std::uint8_t>(text.begin(), text.end()));
  };
  says(
      "versions",
      format(
          "Lockstep {}, LibTorch {}, backend shm",
          kVersion,
          torch_library_version()));
  says("shm/guests", "another-host 1 3 4");
  try {
    init_process_group(
        {.backend = "shm",
         .init_method = "file://" + (folder / "store"),
         .rank = 1,
         .world_size = 2});
    FAIL();
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(
        error.what(),
        HasSubstr("ranks 0 and 1 cannot share memory: another host"));
  }
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
