// SPDX-License-Identifier: BSD-3-Clause
//
// Starts the ranks of a job on this machine and looks after them: `lockstep
// run`. A rank that fails ends the others; then all are started again, as often
// as allowed. torchrun is the tool where machines come and go.
//   LaunchOptions options{.program = {"./train"}, .local_size = 4};
//   const Result<int> status = launch(options, consoles, log);
#pragma once

#include "lockstep/base/log_sink.h"
#include "lockstep/launch/internal/console.h"
#include "lockstep/launch/internal/options.h"

namespace lockstep::launch {

/// Returns the exit status of the job: 0 if all ranks ended well; that of the
/// rank that failed first, 128 and the signal's number if one ended it.
/// Signals of `options` reach the ranks while it runs; a second SIGINT kills
/// them. No rank outlives the call, nor the caller's process; what a rank has
/// started outlives the process if that is killed.
/// When it returns, all that ranks and `log` wrote to `consoles` is printed,
/// unless a signal came and nobody reads.
/// Threads: call it from a program with one thread.
/// Errors: kNotFound or kIo if the program does not start or a log file cannot
/// be made.
Result<int>
launch(const LaunchOptions& options, Consoles& consoles, LogSink& log);

} // namespace lockstep::launch
