// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/rank_environment.h"

#include <csignal>

#include <gmock/gmock.h>

#include "tests/support/scoped_variable.h"

namespace lockstep::launch {
namespace {

using test::ScopedVariable;
using testing::AllOf;
using testing::Contains;
using testing::Not;
using testing::Pair;

TEST(RankVariables, AreTorchruns) {
  const LaunchOptions options{
      .local_size = 2,
      .nodes = 3,
      .node_rank = 2,
      .master_addr = "box",
      .run_id = "job",
      .max_restarts = 4,
      .signals = {SIGTERM, SIGINT}};
  EXPECT_THAT(
      rank_variables(
          options,
          {.local_rank = 1,
           .attempt = 3,
           .master_port = 1234,
           .error_file = "/e"}),
      AllOf(
          Contains(Pair("RANK", "5")),
          Contains(Pair("WORLD_SIZE", "6")),
          Contains(Pair("LOCAL_RANK", "1")),
          Contains(Pair("LOCAL_WORLD_SIZE", "2")),
          Contains(Pair("GROUP_RANK", "2")),
          Contains(Pair("GROUP_WORLD_SIZE", "3")),
          Contains(Pair("MASTER_ADDR", "box")),
          Contains(Pair("MASTER_PORT", "1234"))));
  EXPECT_THAT(
      rank_variables(options, {.attempt = 3, .error_file = "/e"}),
      AllOf(
          Contains(Pair("TORCHELASTIC_RESTART_COUNT", "3")),
          Contains(Pair("TORCHELASTIC_MAX_RESTARTS", "4")),
          Contains(Pair("TORCHELASTIC_RUN_ID", "job")),
          Contains(Pair("TORCHELASTIC_USE_AGENT_STORE", "False")),
          Contains(Pair("TORCHELASTIC_ERROR_FILE", "/e")),
          Contains(Pair("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT"))));
}

TEST(RankVariables, ShareTheCoresUnlessThreadsAreSet) {
  const ScopedVariable none("OMP_NUM_THREADS", nullptr);
  EXPECT_THAT(
      rank_variables({.local_size = 1000}, {}),
      Contains(Pair("OMP_NUM_THREADS", "1")));
  EXPECT_EQ(threads_for_each({.local_size = 1}), 0);
  const ScopedVariable five("OMP_NUM_THREADS", "5");
  EXPECT_EQ(threads_for_each({.local_size = 1000}), 0);
}

TEST(RankVariables, ShowOneGpuToEachRank) {
  const LaunchOptions options{.local_size = 2, .is_virtual_local_rank = true};
  {
    const ScopedVariable two("CUDA_VISIBLE_DEVICES", "4, 6");
    EXPECT_THAT(
        rank_variables(options, {.local_rank = 1}),
        AllOf(
            Contains(Pair("LOCAL_RANK", "0")),
            Contains(Pair("CUDA_VISIBLE_DEVICES", "6"))));
  }
  const ScopedVariable none("CUDA_VISIBLE_DEVICES", nullptr);
  EXPECT_THAT(
      rank_variables(options, {.local_rank = 1}),
      Contains(Pair("CUDA_VISIBLE_DEVICES", "1")));
}

TEST(MergedEnvironment, ReplacesByName) {
  const ScopedVariable old("LOCKSTEP_TEST_A", "old");
  const ScopedVariable kept("LOCKSTEP_TEST_AB", "kept");
  EXPECT_THAT(
      merged_environment({{"LOCKSTEP_TEST_A", "new"}}),
      AllOf(
          Contains("LOCKSTEP_TEST_A=new"),
          Not(Contains("LOCKSTEP_TEST_A=old")),
          Contains("LOCKSTEP_TEST_AB=kept")));
}

} // namespace
} // namespace lockstep::launch
