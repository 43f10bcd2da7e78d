// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/base/rank_info.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/internal/numbers.h"
#include "lockstep/base/strings.h"

namespace lockstep {
namespace {

struct Launcher {
  const char* rank = nullptr;
  const char* size = nullptr;
  const char* local_rank = nullptr;
  // Null where there is no such variable.
  const char* local_size = nullptr;
  // Off: only a rank tells that the launcher has started this process.
  bool any_tells = false;
  // Which step of a job this process is in; null where there are none.
  const char* step = nullptr;
};

constexpr std::array kLaunchers{
    Launcher{
        .rank = "RANK",
        .size = "WORLD_SIZE",
        .local_rank = "LOCAL_RANK",
        .local_size = "LOCAL_WORLD_SIZE",
        .any_tells = true},
    // Before Slurm: mpirun starts its daemons by srun.
    Launcher{
        .rank = "OMPI_COMM_WORLD_RANK",
        .size = "OMPI_COMM_WORLD_SIZE",
        .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
        .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
        .any_tells = true},
    Launcher{
        .rank = "SLURM_PROCID",
        .size = "SLURM_NTASKS",
        .local_rank = "SLURM_LOCALID",
        .step = "SLURM_STEP_ID"},
};

const char* variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the header forbids to change it
  return name == nullptr ? nullptr : std::getenv(name);
}

// Slurm's slurm.h keeps the numbers from SLURM_MAX_NORMAL_STEP_ID on for steps
// that srun did not start, such as the batch script (4294967291) and salloc's
// shell (4294967290). They have SLURM_PROCID=0, and the job's SLURM_NTASKS; as
// an int their number is negative, and setup_env() in Slurm's env.c leaves it
// out.
bool is_srun_step(const char* step) {
  constexpr std::int64_t kMaxNormalStep = 0xfffffff0;
  return step != nullptr && parse_number<std::int64_t>(step, 0, kMaxNormalStep);
}

bool has_started_us(const Launcher& launcher) {
  if (launcher.step != nullptr && !is_srun_step(variable(launcher.step))) {
    return false;
  }
  return variable(launcher.rank) != nullptr ||
         (launcher.any_tells && (variable(launcher.size) != nullptr ||
                                 variable(launcher.local_rank) != nullptr ||
                                 variable(launcher.local_size) != nullptr));
}

Error wrong(std::string message) {
  return {
      .code = ErrorCode::kInvalidArgument,
      .op = "world.rank_info",
      .message = std::move(message),
      .hint = "start all processes with one launcher, or unset its variables"};
}

// The variable's number, from `low` up to but not including `high`.
Result<int> number(const char* name, int low, int high) {
  const char* const value = variable(name);
  if (value == nullptr) {
    return wrong(format(
        "environment variable {} is missing beside others of its launcher",
        name));
  }
  const auto parsed = parse_number<int>(value, low, high - 1);
  if (!parsed) {
    return wrong(format(
        "environment variable {}; expected {} to {}, got '{}'",
        name,
        low,
        high - 1,
        escape(value)));
  }
  return *parsed;
}

Result<RankInfo> read_variables(const Launcher& launcher) {
  constexpr int kMax = std::numeric_limits<int>::max();
  RankInfo info;
  LOCKSTEP_ASSIGN(info.size, number(launcher.size, 1, kMax));
  LOCKSTEP_ASSIGN(info.rank, number(launcher.rank, 0, info.size));
  // By hand, and with one process in each container, nobody sets these.
  info.local_size = 0;
  if (variable(launcher.local_size) != nullptr) {
    LOCKSTEP_ASSIGN(
        info.local_size,
        number(launcher.local_size, 1, info.size + 1));
  }
  const int local_limit = info.local_size == 0 ? info.size : info.local_size;
  if (variable(launcher.local_rank) != nullptr) {
    LOCKSTEP_ASSIGN(
        info.local_rank,
        number(launcher.local_rank, 0, local_limit));
  }
  return info;
}

// As c10d, which has one for the process.
struct DefaultGroup {
  std::mutex mutex;
  std::optional<RankInfo> place = {};
};

DefaultGroup& default_group() {
  static DefaultGroup group;
  return group;
}

} // namespace

Result<RankInfo> job_rank() {
  DefaultGroup& group = default_group();
  const std::lock_guard lock(group.mutex);
  auto told = rank_info_from_environment();
  if (!group.place || (told && told->rank == group.place->rank &&
                       told->size == group.place->size)) {
    return told;
  }
  return RankInfo{
      .rank = group.place->rank,
      .size = group.place->size,
      .local_rank = group.place->rank,
      .local_size = 0};
}

void set_default_group(std::optional<RankInfo> rank_and_size) {
  DefaultGroup& group = default_group();
  const std::lock_guard lock(group.mutex);
  group.place = rank_and_size;
}

Result<RankInfo> rank_info_from_environment() {
  const auto* const launcher = std::ranges::find_if(kLaunchers, has_started_us);
  return launcher == kLaunchers.end() ? Result<RankInfo>(RankInfo())
                                      : read_variables(*launcher);
}

} // namespace lockstep
