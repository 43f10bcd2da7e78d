// SPDX-License-Identifier: BSD-3-Clause
//
// What a model is trained for: the loss of its outputs, what is measured, which
// number chooses the best epoch, what a prediction is.
//   Trainer trainer(config, {.own = {.model = net, .train_data = images,
//                                    .task = segmentation(21)}});
//   Task own{.loss = hinge, .metrics = {accuracy()}}; // a program's own
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "lockstep/data/dataset.h"
#include "lockstep/train/observer.h"
#include "lockstep/train/scoring.h"

namespace lockstep::train {

/// The number to be made small: [] of the outputs and the targets of a batch,
/// both on the first device.
using LossFunction = std::function<
    at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)>;

/// Cross entropy, averaged over what is counted of the batch. Outputs [N,
/// classes, ...]; targets [N, ...] int64, or [N, classes, ...] shares of
/// classes.
LossFunction cross_entropy(
    double label_smoothing = 0.0,
    std::int64_t ignore_index = -100);

struct Task {
  /// "segmentation"; of a program's own any name, or none.
  std::string name = {};
  /// Required.
  LossFunction loss = {};
  /// Of a test; none: `loss`.
  LossFunction test_loss = {};
  /// All are measured in a test, the first one in training, too.
  Metrics metrics = {};
  /// The number of `metrics` by which the test chooses the best epoch, or
  /// "loss"; empty: the first metric's first, or the loss without metrics. In a
  /// run without a test the loss of the training does.
  std::string best = {};
  /// What the outputs of a batch say, on their device: numbers of classes, a
  /// mask, values. None: the outputs.
  std::function<at::Tensor(const at::Tensor& outputs)> predict = {};

  [[nodiscard]] bool is_empty() const {
    return !loss;
  }
  /// The metrics that are measured in training.
  [[nodiscard]] MetricSpan train_metrics() const {
    return MetricSpan(metrics).first(metrics.empty() ? 0 : 1);
  }
  /// Errors: throws kInvalidArgument (E_METRIC) for a `best` that no metric
  /// tells, with the nearest one.
  [[nodiscard]] BestBy best_by(bool has_test) const;
};

/// One class for a sample: outputs [N, classes], targets [N] int64. Measures
/// top1 and top5.
Task classification(double label_smoothing = 0.0);

/// A class for each pixel: outputs [N, classes, H, W], targets [N, H, W] int64,
/// of which `ignore_index` is not counted. Measures miou, dice and pixel_acc.
Task segmentation(std::int64_t num_classes, std::int64_t ignore_index = 255);

/// Any number of labels for a sample: outputs [N, labels], targets [N, labels]
/// float32, 0 or 1. The loss is the binary cross entropy of logits. Measures
/// f1_macro and others.
Task multi_label(std::int64_t num_labels);

/// Values: outputs and targets [N, ...] float32 of one shape. The loss is the
/// mean squared error. Measures mae, mse, rmse and r2, with several values in a
/// row [N, num_values] the mean of their r2; the lowest mae is best.
Task regression(std::int64_t num_values = 1);

/// Names of the tasks above.
std::vector<std::string> task_names();

/// The task of that name for `data`; "auto": the one that its targets are for:
/// one class, a mask of classes, values. `metric`: what chooses the best epoch,
/// one of the task's or another that fits it; "auto": the task's.
/// Errors: throws kInvalidArgument (E_TASK) for data without targets, or with
/// targets that the task does not take; (E_METRIC) for an unknown metric.
Task task_for(
    const Dataset& data,
    std::string_view name = "auto",
    std::string_view metric = "auto",
    double label_smoothing = 0.0);

} // namespace lockstep::train
