// SPDX-License-Identifier: BSD-3-Clause
//
// Names in a run folder that both programs know: `lockstep-train` writes them,
// `lockstep runs` reads them.
#pragma once

#include <string_view>

namespace lockstep::train {

inline constexpr std::string_view kRunsFolder = "runs";
/// What a run writes into its folder, besides checkpoints (checkpoint_files.h).
inline constexpr std::string_view kArgsFile = "args.yaml";
inline constexpr std::string_view kEnvFile = "env.json";
inline constexpr std::string_view kResultsFile = "results.csv";
inline constexpr std::string_view kCurvesFile = "results.svg";
inline constexpr std::string_view kStepsFile = "steps.csv";
inline constexpr std::string_view kLogFile = "log.txt";
inline constexpr std::string_view kMetricsFile = "metrics.jsonl";
/// The page, and what it shows that no other file holds.
inline constexpr std::string_view kPageFile = "report.html";
inline constexpr std::string_view kDetailsFile = "report.json";

/// With `--profile`.
inline constexpr std::string_view kTraceFile = "trace.json";

/// Where a setting comes from that a run goes on with.
inline constexpr std::string_view kFromCheckpoint = "the checkpoint";

/// Columns of `results.csv` and `steps.csv`.
/// Those of `results.csv` are "train_" or "val_" and "loss" or a metric's name,
/// between those that all runs have.
inline constexpr std::string_view kStepsHeader = "step,epoch,loss,lr";
inline constexpr std::string_view kTrainPrefix = "train_";
inline constexpr std::string_view kTestPrefix = "val_";
inline constexpr std::string_view kLossName = "loss";
/// Those of `results.csv` that somebody reads.
inline constexpr std::string_view kEpochColumn = "epoch";
inline constexpr std::string_view kTrainLossColumn = "train_loss";
inline constexpr std::string_view kTestLossColumn = "val_loss";
inline constexpr std::string_view kTestAccuracyColumn = "val_top1";
inline constexpr std::string_view kRateColumn = "lr";
inline constexpr std::string_view kSecondsColumn = "epoch_s";

} // namespace lockstep::train
