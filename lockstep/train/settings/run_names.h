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

/// Columns of `results.csv` and `steps.csv`.
inline constexpr std::string_view kResultsHeader =
    "epoch,step,samples,train_loss,train_top1,val_loss,val_top1,val_top5,lr,"
    "images_per_s,epoch_s,user_s,system_s";
inline constexpr std::string_view kStepsHeader = "step,epoch,loss,lr";
/// Those of `results.csv` that somebody reads.
inline constexpr std::string_view kEpochColumn = "epoch";
inline constexpr std::string_view kTrainLossColumn = "train_loss";
inline constexpr std::string_view kTrainAccuracyColumn = "train_top1";
inline constexpr std::string_view kTestLossColumn = "val_loss";
inline constexpr std::string_view kTestAccuracyColumn = "val_top1";
inline constexpr std::string_view kRateColumn = "lr";
inline constexpr std::string_view kSecondsColumn = "epoch_s";

} // namespace lockstep::train
