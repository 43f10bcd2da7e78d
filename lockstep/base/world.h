// SPDX-License-Identifier: BSD-3-Clause
//
// Who this process is among the processes of a run, and the few things that
// they do together outside of training itself: add numbers, agree, hand out
// bytes. One process is a world too, so that nobody asks for the special case.
//   World& world = world_of_one();
//   world.sum(totals);
//   if (world.is_writer()) { save(totals); }
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/base/result.h"

namespace lockstep {

/// The place of a process in a run.
struct RankInfo {
  int rank = 0;
  /// Processes of the run, on all machines.
  int size = 1;
  /// Among the processes on this machine.
  int local_rank = 0;
  /// Processes on this machine; 0 where the launcher does not tell (Slurm).
  int local_size = 1;

  friend bool operator==(const RankInfo&, const RankInfo&) = default;
};

/// Reads what the launcher has set, the first that is there: torchrun (RANK,
/// WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE), Slurm (SLURM_PROCID,
/// SLURM_NTASKS, SLURM_LOCALID), Open MPI (OMPI_COMM_WORLD_RANK, _SIZE,
/// _LOCAL_RANK, _LOCAL_SIZE). One process where there is no launcher. A Slurm
/// shell without `srun` has no SLURM_PROCID and counts as none. Threads: none
/// may change the environment meanwhile. Errors: kInvalidArgument, naming the
/// variable, for one that is missing beside others, is no number, or is outside
/// of its range.
Result<RankInfo> rank_info_from_environment();

/// The place of this process in its job: in the default process group while
/// there is one, else `rank_info_from_environment`. Where the launcher does not
/// know the group (`tcp://`, `file://`), `local_rank` is the rank and
/// `local_size` 0. Threads: as there. Errors: as there.
Result<RankInfo> job_rank();
/// For `dist`: the default process group that this process is in now; none: it
/// is in none. Threads: safe beside `job_rank`.
void set_default_group(std::optional<RankInfo> rank_and_size);

/// The processes of a run, acting together. Every rank makes the same calls in
/// the same order.
/// Threads: one at a time.
/// Errors: throws `Exception`, for example kTimeout if a rank is gone; the
/// world is of no use then, and what the call was to fill is undefined.
class World {
 public:
  virtual ~World() = default;

  [[nodiscard]] virtual int rank() const = 0;
  /// Ranks, at least 1.
  [[nodiscard]] virtual int size() const = 0;

  /// Replaces each element by the sum over all ranks, added in the order of the
  /// ranks, so that it is the same on all of them and at each run. All give the
  /// same number of elements.
  virtual void sum(std::span<double> values) = 0;
  /// True on all ranks if any of them says true.
  virtual bool any(bool value) = 0;
  /// Gives all ranks the bytes of rank 0; what the others hold is replaced, of
  /// whatever size.
  virtual void broadcast(std::vector<std::byte>& bytes) = 0;
  /// The bytes of all ranks, of whatever sizes, by rank; on all ranks.
  [[nodiscard]] virtual std::vector<std::vector<std::byte>> gather(
      std::span<const std::byte> bytes) = 0;
  /// Returns when all ranks have called it.
  virtual void barrier() = 0;

  /// True on the one rank that writes files and prints. Nothing else decides
  /// that.
  [[nodiscard]] bool is_writer() const {
    return rank() == 0;
  }
};

/// The world of a process that is alone; all its calls leave their arguments as
/// they are. Threads: safe to call from several.
World& world_of_one();

} // namespace lockstep
