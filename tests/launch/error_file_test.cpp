// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/launch/error_file.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/strings.h"
#include "tests/support/sanitizer.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep::launch {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

struct Case {
  std::string way = {};
  std::string what = {};
  int status = 0;
  bool follows = false;
  // A function that stands in the stack.
  std::string frame = {};
};

class ErrorFile : public testing::TestWithParam<Case> {};

TEST_P(ErrorFile, SaysWhatAndWhere) {
  const Case& row = GetParam();
  const test::ScratchDir dir;
  const std::string path = dir / "error.json";
  const auto outcome = test::run_shell(format(
      "date +%s; ulimit -c 0; TORCHELASTIC_ERROR_FILE={} {} {}",
      path,
      LOCKSTEP_FAILING_RANK,
      row.way));
  EXPECT_EQ(outcome.status, row.status) << outcome.err;
  const auto root = json::parse(test::file_text(path)); // throws if not whole
  const json& extra = root["message"]["extraInfo"];
  EXPECT_THAT(
      root["message"]["message"].get<std::string>(),
      StartsWith(row.what));
  const auto stack = extra["py_callstack"].get<std::string>();
  EXPECT_THAT(stack, StartsWith(row.what));
  EXPECT_THAT(stack, HasSubstr(row.frame));
  // time(2) goes by the clock's ticks, and date does not.
  const std::int64_t started = std::stoll(outcome.out) - 1;
  EXPECT_GE(
      std::stoll(extra["timestamp"].get<std::string>()),
      started + (row.follows ? 1 : 0));
  EXPECT_EQ(extra.value("follow_on", false), row.follows);
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

const std::vector<Case> kCases{
    {"throw", "no \"data\"\nin the folder", 134, false, "\n#0 0x"},
    {"throw-int", "an exception that is no", 134, false, "\n#0 0x"},
    {"peer", "[dist.all_reduce] rank 1 is gone", 134, true, "\n#0 0x"},
    {"caught", "no \"data\"\nin the folder", 3, false, ""},
    {"segv", "killed by SIGSEGV", 139, false, "\n#0 0x"},
    {"abort", "killed by SIGABRT", 134, false, "\n#0 0x"},
    {"overflow", "killed by SIGSEGV", 139, false, "\n#0 0x"},
    {"terminate", "std::terminate was called", 134, false, "\n#0 0x"},
};

INSTANTIATE_TEST_SUITE_P(
    Ways,
    ErrorFile,
    testing::ValuesIn(kCases),
    [](const auto& param) {
      std::string name = param.param.way;
      std::erase(name, '-');
      return name;
    });

// Each of them would end the process before another one has written.
TEST(ErrorFile, IsWholeWhenManyThreadsFailAtOnce) {
  const std::vector<std::pair<std::string, std::string>> ways{
      {"segv-threads", "killed by SIGSEGV"},
      {"abort-threads", "killed by SIGABRT"},
      {"throw-threads", "no \"data\"\nin the folder"}};
  for (const auto& [way, what] : ways) {
    for (int run = 0; run < 10; ++run) {
      const test::ScratchDir dir;
      const std::string path = dir / "error.json";
      const auto outcome = test::run_shell(format(
          "ulimit -c 0; TORCHELASTIC_ERROR_FILE={} {} {}",
          path,
          LOCKSTEP_FAILING_RANK,
          way));
      EXPECT_EQ(outcome.status, way == "segv-threads" ? 139 : 134);
      const auto root =
          json::parse(test::file_text(path), nullptr, /*throws=*/false);
      ASSERT_TRUE(root.is_object()) << way << " " << run;
      EXPECT_EQ(root["message"]["message"], what);
    }
  }
}

TEST(ErrorFile, FaultsInTheHandlerItselfEndTheProcess) {
  const test::ScratchDir dir;
  const auto outcome = test::run_shell(format(
      "ulimit -c 0; TORCHELASTIC_ERROR_FILE={} timeout 60 {} segv-in-handler",
      dir / "error.json",
      LOCKSTEP_FAILING_RANK));
  EXPECT_EQ(outcome.status, 139);
}

TEST(ErrorFile, IsNotMadeWithoutAFailureOrAVariable) {
  const test::ScratchDir dir;
  const std::string path = dir / "error.json";
  const auto well = test::run_shell(format(
      "TORCHELASTIC_ERROR_FILE={} {} well",
      path,
      LOCKSTEP_FAILING_RANK));
  EXPECT_EQ(well.status, 0);
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto alone = test::run_shell(format(
      "cd {}; env -u TORCHELASTIC_ERROR_FILE {} caught",
      dir.path(),
      LOCKSTEP_FAILING_RANK));
  EXPECT_EQ(alone.status, 3);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

} // namespace
} // namespace lockstep::launch
