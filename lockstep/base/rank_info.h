// SPDX-License-Identifier: BSD-3-Clause
//
// Who this process is among the processes of a run. What they do together is
// `dist::ProcessGroup`'s.
#pragma once

#include <optional>

#include "lockstep/base/error.h"

#pragma GCC visibility push(default)
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
/// WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE), Open MPI (OMPI_COMM_WORLD_RANK,
/// _SIZE, _LOCAL_RANK, _LOCAL_SIZE), Slurm's `srun` (SLURM_PROCID,
/// SLURM_NTASKS, SLURM_LOCALID). One process where there is no launcher. A
/// script of `sbatch` and a shell of `salloc` count as none: Slurm sets
/// SLURM_PROCID there, too, but SLURM_STEP_ID only in steps of `srun`.
/// Threads: none may change the environment meanwhile. Errors:
/// kInvalidArgument, naming the variable, for one that is missing beside
/// others, is no number, or is outside of its range.
Result<RankInfo> rank_info_from_environment();

/// The place of this process in its job: in the default process group while
/// there is one, else `rank_info_from_environment`. Where the launcher does not
/// know the group (`tcp://`, `file://`), `local_rank` is the rank and
/// `local_size` 0. Threads: as there. Errors: as there.
Result<RankInfo> job_rank();
/// For `dist`: the default process group that this process is in now; none: it
/// is in none. Threads: safe beside `job_rank`.
void set_default_group(std::optional<RankInfo> rank_and_size);

} // namespace lockstep
#pragma GCC visibility pop
