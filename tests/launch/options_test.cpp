// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/internal/options.h"

#include <csignal>

#include <gmock/gmock.h>

#include "tests/support/scoped_variable.h"

namespace lockstep::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr OutputPlaces kConsole;
constexpr OutputPlaces kFiles{OutputPlace::kFile, OutputPlace::kFile};

TEST(ParsePlaces, ReadsTorchrunsNumbers) {
  EXPECT_THAT(
      parse_places("0", "0", 2).value(),
      ElementsAre(kConsole, kConsole));
  EXPECT_THAT(parse_places("3", "0", 1).value(), ElementsAre(kFiles));
  EXPECT_THAT(
      parse_places("1", "2", 1).value(),
      ElementsAre(OutputPlaces{OutputPlace::kFile, OutputPlace::kBoth}));
  EXPECT_THAT(
      parse_places("0:3,2:1", "1:2", 3).value(),
      ElementsAre(
          kFiles,
          OutputPlaces{OutputPlace::kConsole, OutputPlace::kBoth},
          OutputPlaces{OutputPlace::kFile, OutputPlace::kConsole}));
}

TEST(ParsePlaces, RefusesOtherTexts) {
  for (const char* text :
       {"", "4", "-1", "x", "0:4", "2:1", "-1:1", "0:1,", "0:1;1:1", "1:"}) {
    const auto places = parse_places(text, "0", 2);
    ASSERT_FALSE(places) << text;
    EXPECT_THAT(places.error().message, HasSubstr("--redirects"));
  }
}

TEST(PlacesOf, HidesTheOtherRanks) {
  LaunchOptions options{.shown_ranks = {1}};
  EXPECT_EQ(options.places_of(0), kFiles);
  EXPECT_EQ(options.places_of(1), kConsole);
  options.shown_ranks.clear();
  EXPECT_EQ(options.places_of(7), kConsole);
}

TEST(ParseSignals, ReadsNames) {
  EXPECT_THAT(
      parse_signals("SIGTERM,SIGUSR1").value(),
      ElementsAre(SIGTERM, SIGUSR1));
  for (const char* text : {"", "TERM", "SIGKILL", "SIGSTOP", "SIGTERM,"}) {
    EXPECT_FALSE(parse_signals(text)) << text;
  }
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(99), "signal 99");
}

TEST(ParseLocalSize, TakesNumbersAndWords) {
  EXPECT_EQ(parse_local_size("3").value(), 3);
  EXPECT_GE(parse_local_size("cpu").value(), 1);
  EXPECT_GE(parse_local_size("auto").value(), 1);
  for (const char* text : {"", "0", "-2", "two", "2.5", "5000", "3x"}) {
    EXPECT_FALSE(parse_local_size(text)) << text;
  }
}

TEST(ParseLocalSize, CountsTheGpusThatAProgramWouldSee) {
  {
    const test::ScopedVariable three("CUDA_VISIBLE_DEVICES", "2,5,7");
    EXPECT_EQ(parse_local_size("gpu").value(), 3);
    EXPECT_EQ(parse_local_size("auto").value(), 3);
  }
  const test::ScopedVariable none("CUDA_VISIBLE_DEVICES", "");
  EXPECT_EQ(parse_local_size("gpu").error().code, ErrorCode::kUnavailable);
}

TEST(CheckOwnDevices, RefusesMoreRanksThanVisibleDevices) {
  {
    const test::ScopedVariable two("CUDA_VISIBLE_DEVICES", "4, 5");
    EXPECT_TRUE(check_own_devices(2));
    const auto status = check_own_devices(4);
    ASSERT_FALSE(status);
    EXPECT_THAT(
        status.error().message,
        HasSubstr("each of 4 ranks sees a GPU of its own, and "
                  "CUDA_VISIBLE_DEVICES names 2: '4,5'"));
    EXPECT_EQ(status.error().hint, "--nproc-per-node 2");
  }
  {
    const test::ScopedVariable none("CUDA_VISIBLE_DEVICES", "");
    EXPECT_TRUE(check_own_devices(1)) << "as torchrun has it";
    EXPECT_FALSE(check_own_devices(2));
  }
  const test::ScopedVariable any("CUDA_VISIBLE_DEVICES", nullptr);
  EXPECT_TRUE(check_own_devices(8));
}

TEST(Ranks, AreCountedOverTheMachines) {
  const LaunchOptions options{.local_size = 3, .nodes = 2, .node_rank = 1};
  EXPECT_EQ(options.world_size(), 6);
  EXPECT_EQ(options.rank_of(2), 5);
}

} // namespace
} // namespace lockstep::launch
