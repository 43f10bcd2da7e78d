// SPDX-License-Identifier: BSD-3-Clause
//
// Sub-commands of `lockstep-train`: one function, one row of
// `train::kTrainCommands` and one entry beside it each.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lockstep::cli_train {

using Arguments = std::span<const std::string>;

/// Runs `args[0]` with the rest; returns the exit status.
/// Errors: throws kInvalidArgument for an unknown sub-command, and what the
/// sub-command throws.
int run_command(Arguments args);

/// Writes `text` to standard output.
/// Errors: throws kIo if not all of it can be written.
void print(std::string_view text);

/// `train`: see `--help`. Status 75 after a stop that can be resumed.
int train_command(Arguments args);

/// `summary MODEL`: its layers as a table or JSON.
int summary_command(Arguments args);

/// `bench MODEL`: what a training step costs, as tables or JSON.
int bench_command(Arguments args);

/// `predict RUN|FILE IMAGES...`: classes and scores, values, or masks.
int predict_command(Arguments args);

/// `eval RUN|FILE`: metrics and tables of the test, as text, JSON or files.
int eval_command(Arguments args);
/// `data DIR|FILE`: what data are there, as text or JSON.
int data_command(Arguments args);

} // namespace lockstep::cli_train
