// SPDX-License-Identifier: BSD-3-Clause
//
// All that can be measured of a trained model on data with targets.
//   const Evaluation found = evaluate_all(*strategy, {test}, trained, {});
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/data/dataset.h"
#include "lockstep/metrics/metric.h"
#include "lockstep/train/checkpoints/trained_data.h"
#include "lockstep/train/strategy.h"
#include "lockstep/train/task.h"

namespace lockstep::train {

/// A sample with a high loss.
struct WorstSample {
  /// Which of the data sets, and which of its samples.
  std::size_t part = 0;
  std::int64_t index = 0;
  std::string name = {};
  /// Of this sample alone.
  double loss = 0.0;
  /// As the data set has it, and the model's outputs; both on the CPU, without
  /// the batch dimension.
  at::Tensor target = {};
  at::Tensor output = {};
};

struct Evaluation {
  std::int64_t samples = 0;
  /// The loss of the task's test, and all metrics: no name is there twice.
  Score score = {};
  /// Of the metrics, in their order.
  std::vector<MetricInfo> infos = {};
  /// No name is there twice: metrics that say something of the same classes
  /// share a table.
  std::vector<MetricTable> tables = {};
  /// Losses that are NaN first, then the highest; of equal ones the first
  /// sample.
  std::vector<WorstSample> worst = {};
};

struct EvaluationOptions {
  std::int64_t batch_size = 64;
  std::int64_t workers = 1;
  /// Samples to keep.
  std::int64_t worst = 25;
};

/// What the task measures, and beside it confusion and AUROC of classes, AUROC
/// of labels, the columns of values.
Metrics all_metrics(const Task& task, const TrainedData& data);

/// Goes through all samples of `parts` once. The strategy's task is not used.
/// Errors: throws what reading and the metrics throw.
Evaluation evaluate_all(
    Strategy& strategy,
    const std::vector<std::shared_ptr<const Dataset>>& parts,
    const TrainedData& data,
    const Task& task,
    const EvaluationOptions& options);

} // namespace lockstep::train
