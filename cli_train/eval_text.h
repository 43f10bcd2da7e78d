// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep eval` says: for people, and as JSON.
#pragma once

#include <string>

#include "cli_train/eval_job.h"
#include "lockstep/base/json.h"
#include "lockstep/metrics/metric.h"

namespace lockstep::cli_train {

/// The table of that name; null if there is none.
const MetricTable* find_table(
    const train::Evaluation& found,
    std::string_view name);

/// What a target or the outputs of a sample say: "cat", "cat;dog" for labels
/// and the classes in a mask, values. Empty for maps.
std::string target_text(
    const train::WorstSample& sample,
    const train::TrainedData& trained);
std::string prediction_text(
    const train::WorstSample& sample,
    const train::TrainedData& trained);

/// Metrics, tables, and of up to 20 classes the confusion matrix; of more the
/// pairs that are taken for each other most often.
std::string eval_text(const EvalAnswer& answer);

/// Of the schema lockstep.eval/1.
Json eval_json(const EvalAnswer& answer);

} // namespace lockstep::cli_train
