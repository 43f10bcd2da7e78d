// SPDX-License-Identifier: BSD-3-Clause
//
// The cases of tests/oracle/metrics.py, and small helpers for metrics.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/metrics/metric.h"

namespace lockstep::test {

/// One metric on some numbers, and what it gives.
struct MetricCase {
  /// "confusion: ties".
  std::string name = {};
  std::shared_ptr<Metric> metric = {};
  at::Tensor outputs = {};
  at::Tensor targets = {};
  /// By the number's name; null is NaN. scikit-learn's float64, or counts.
  nlohmann::json exact = {};
  /// Of some numbers: torchmetrics', in float32 unless they are errors.
  nlohmann::json torchmetrics = {};
  /// By the table's name: rows of numbers.
  nlohmann::json tables = {};
};

/// From tests/metrics/golden, or, if LOCKSTEP_ORACLE_PYTHON names a Python with
/// scikit-learn and torchmetrics, from a new run of the script.
const std::vector<MetricCase>& metric_cases();

/// The sums of a batch, on the host.
std::vector<double> sums_of(
    const Metric& metric,
    const at::Tensor& outputs,
    const at::Tensor& targets);

/// The numbers of one batch.
std::vector<double> values_of(
    const Metric& metric,
    const at::Tensor& outputs,
    const at::Tensor& targets);

/// The error that `action` throws; "no error" if it does not.
template <class Action>
Error metric_error(const Action& action) {
  try {
    action();
  } catch (const Exception& e) {
    return e.error();
  }
  return {.message = "no error"};
}

} // namespace lockstep::test
