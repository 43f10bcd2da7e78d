// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/rank_info.h"

#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::array kVariables{
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_LOCALID",
    "SLURM_STEP_ID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE"};

// The environment of a launcher, put back at the end. One thread only.
// NOLINTBEGIN(concurrency-mt-unsafe)
class RankInfoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) {
      const char* const value = std::getenv(name);
      saved_[name] = value == nullptr ? std::nullopt : std::optional(value);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : saved_) {
      ::unsetenv(name.c_str());
      if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
      }
    }
  }

  using Variables = std::map<std::string, std::string>;

  static Result<RankInfo> with(const Variables& variables) {
    for (const char* name : kVariables) {
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
    return rank_info_from_environment();
  }

  static std::string refusal(const Variables& variables) {
    const auto info = with(variables);
    if (info) {
      return "";
    }
    EXPECT_EQ(info.error().code, ErrorCode::kInvalidArgument);
    return info.error().message;
  }

 private:
  std::map<std::string, std::optional<std::string>> saved_;
};
// NOLINTEND(concurrency-mt-unsafe)

TEST_F(RankInfoTest, ReadsEachLauncherAndTorchrunFirst) {
  EXPECT_EQ(with({}).value(), RankInfo());
  const Variables slurm{
      {"SLURM_PROCID", "6"},
      {"SLURM_NTASKS", "7"},
      {"SLURM_LOCALID", "2"},
      {"SLURM_STEP_ID", "0"}};
  const Variables mpi{
      {"OMPI_COMM_WORLD_RANK", "1"},
      {"OMPI_COMM_WORLD_SIZE", "3"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
  EXPECT_EQ(with(slurm).value(), (RankInfo{6, 7, 2, 0}));
  EXPECT_EQ(with(mpi).value(), (RankInfo{1, 3, 0, 1}));
  Variables all{
      {"RANK", "3"},
      {"WORLD_SIZE", "8"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"}};
  all.insert(slurm.begin(), slurm.end());
  all.insert(mpi.begin(), mpi.end());
  EXPECT_EQ(with(all).value(), (RankInfo{3, 8, 1, 2}));
  EXPECT_EQ(with({{"SLURM_NTASKS", "4"}}).value(), RankInfo());
}

// Slurm gives the processes of all steps a number, of those too that nobody
// started as ranks.
TEST_F(RankInfoTest, TakesSlurmsNumbersInStepsOfSrunOnly) {
  struct Row {
    const char* what = "";
    Variables variables = {};
    RankInfo expected = {};
  };
  const Variables batch{
      {"SLURM_PROCID", "0"},
      {"SLURM_NTASKS", "4"},
      {"SLURM_LOCALID", "0"}};
  const auto with_step = [&batch](const char* step) {
    Variables variables = batch;
    variables["SLURM_STEP_ID"] = step;
    return variables;
  };
  Variables mpirun = batch;
  mpirun["OMPI_COMM_WORLD_RANK"] = "3";
  mpirun["OMPI_COMM_WORLD_SIZE"] = "4";
  mpirun["OMPI_COMM_WORLD_LOCAL_RANK"] = "3";
  mpirun["OMPI_COMM_WORLD_LOCAL_SIZE"] = "4";
  Variables of_a_daemon = mpirun; // on the second host
  of_a_daemon["SLURM_PROCID"] = "1";
  of_a_daemon["SLURM_STEP_ID"] = "0";
  const std::vector<Row> rows{
      {"sbatch without --ntasks",
       {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}},
      {"sbatch --ntasks=4", batch},
      {"the batch step's number", with_step("4294967291")},
      {"an interactive step's number", with_step("4294967290")},
      {"as a signed number", with_step("-5")},
      {"no number", with_step("batch")},
      {"srun", with_step("0"), {0, 4, 0, 0}},
      {"a later srun", with_step("17"), {0, 4, 0, 0}},
      {"mpirun inside sbatch", mpirun, {3, 4, 3, 4}},
      {"mpirun by daemons of srun", of_a_daemon, {3, 4, 3, 4}}};
  for (const Row& row : rows) {
    EXPECT_EQ(with(row.variables).value(), row.expected) << row.what;
  }
}

TEST_F(RankInfoTest, NamesTheVariableThatIsMissing) {
  const Variables good{
      {"RANK", "1"},
      {"WORLD_SIZE", "2"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_TRUE(with(good));
  for (const std::string name : {"RANK", "WORLD_SIZE"}) {
    Variables bad = good;
    bad.erase(name);
    EXPECT_EQ(
        refusal(bad),
        "environment variable " + name +
            " is missing beside others of its launcher");
  }
  EXPECT_THAT(
      refusal({{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}),
      HasSubstr("SLURM_NTASKS"));
}

// Kubernetes sets no more, and people who start ranks by hand do not.
TEST_F(RankInfoTest, NeedsNoPlaceOnTheHost) {
  const Variables job{{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  EXPECT_EQ(with(job).value(), (RankInfo{1, 2, 0, 0}));
  Variables more = job;
  more["LOCAL_RANK"] = "1";
  EXPECT_EQ(with(more).value(), (RankInfo{1, 2, 1, 0}));
}

TEST_F(RankInfoTest, RefusesWhatIsNoNumberOrOutside) {
  const Variables good{
      {"RANK", "1"},
      {"WORLD_SIZE", "4"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"}};
  const std::vector<std::pair<std::string, std::string>> changes{
      {"RANK", "4"},
      {"RANK", "-1"},
      {"RANK", ""},
      {"RANK", "1x"},
      {"RANK", " 1"},
      {"RANK", "99999999999"},
      {"WORLD_SIZE", "0"},
      {"LOCAL_RANK", "2"},
      {"LOCAL_WORLD_SIZE", "5"},
      {"LOCAL_WORLD_SIZE", "0"}};
  for (const auto& [name, value] : changes) {
    Variables bad = good;
    bad[name] = value;
    EXPECT_THAT(
        refusal(bad),
        HasSubstr("environment variable " + name + "; expected "));
    EXPECT_THAT(refusal(bad), HasSubstr("got '" + value + "'"));
  }
}

} // namespace
} // namespace lockstep
