// SPDX-License-Identifier: BSD-3-Clause
#include "tests/metrics/cases.h"

#include <cstdlib>
#include <map>
#include <stdexcept>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/shell.h"

namespace lockstep::test {
namespace {

using nlohmann::json;

std::optional<std::int64_t> ignored(const json& options) {
  const auto found = options.find("ignore_index");
  return found == options.end() || found->is_null()
             ? std::nullopt
             : std::optional(found->get<std::int64_t>());
}

PckScale scale_of(const json& options) {
  const std::map<std::string, PckScale> scales{
      {"longer_side", PckScale::kLongerSide},
      {"each_side", PckScale::kEachSide},
      {"pixels", PckScale::kPixels}};
  return scales.at(options["scale"]);
}

std::unique_ptr<Metric> metric_of(const json& entry) {
  const std::string metric = entry["metric"];
  const json& options = entry["options"];
  if (metric == "accuracy") {
    return accuracy(options["top"], {.ignore_index = ignored(options)});
  }
  if (metric == "confusion") {
    return confusion(
        options["num_classes"],
        {.ignore_index = ignored(options),
         .max_matrix_classes = options["max_matrix_classes"]});
  }
  if (metric == "segmentation") {
    return segmentation_metrics(
        options["num_classes"],
        {.ignore_index = ignored(options)});
  }
  if (metric == "multilabel") {
    return multilabel_metrics(
        options["num_labels"],
        {.threshold = options["threshold"]});
  }
  if (metric == "auroc") {
    return auroc(
        options["num_classes"],
        {.thresholds = options["thresholds"],
         .ignore_index = ignored(options)});
  }
  if (metric == "multilabel_auroc") {
    return multilabel_auroc(
        options["num_labels"],
        {.thresholds = options["thresholds"]});
  }
  if (metric == "regression") {
    return regression_metrics({.num_outputs = options["num_outputs"]});
  }
  if (metric == "pck") {
    return pck(
        {.threshold = options["threshold"],
         .scale = scale_of(options),
         .num_points = options["num_points"]});
  }
  throw std::runtime_error("no such metric: " + metric);
}

at::Tensor tensor_of(const json& entry, at::ScalarType type) {
  return torch::tensor(
             entry["data"].get<std::vector<double>>(),
             torch::kFloat64)
      .reshape(entry["shape"].get<std::vector<std::int64_t>>())
      .to(type);
}

json read_cases() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing sets the environment
  const char* python = std::getenv("LOCKSTEP_ORACLE_PYTHON");
  if (python == nullptr) {
    return json::parse(
        file_text(LOCKSTEP_SOURCE_DIR "/tests/metrics/golden/metrics.json"));
  }
  const ScratchDir dir;
  const ShellOutcome outcome = run_shell(format(
      "'{}' '{}' '{}'",
      python,
      LOCKSTEP_SOURCE_DIR "/tests/oracle/metrics.py",
      dir / "metrics.json"));
  if (outcome.status != 0) {
    throw std::runtime_error(outcome.err);
  }
  return json::parse(file_text(dir / "metrics.json"));
}

std::vector<MetricCase> make_cases() {
  std::vector<MetricCase> cases;
  for (const json& entry : read_cases()) {
    const json& targets = entry["targets"];
    cases.push_back(
        {.name = format(
             "{}: {}",
             entry["metric"].get<std::string>(),
             entry["name"].get<std::string>()),
         .metric = metric_of(entry),
         .outputs = tensor_of(entry["outputs"], at::kFloat),
         .targets = tensor_of(
             targets,
             targets["is_integer"] ? at::kLong : at::kDouble),
         .exact = entry["exact"],
         .torchmetrics = entry["torchmetrics"],
         .tables = entry["tables"]});
  }
  return cases;
}

} // namespace

const std::vector<MetricCase>& metric_cases() {
  static const std::vector<MetricCase> kCases = make_cases();
  return kCases;
}

std::vector<double> sums_of(
    const Metric& metric,
    const at::Tensor& outputs,
    const at::Tensor& targets) {
  const at::Tensor sums = metric.sums(outputs, targets);
  EXPECT_EQ(sums.sizes(), (std::vector<std::int64_t>{metric.size()}));
  EXPECT_EQ(sums.scalar_type(), at::kDouble);
  EXPECT_EQ(sums.device(), outputs.device());
  EXPECT_FALSE(sums.requires_grad());
  const at::Tensor host = sums.to(at::kCPU).contiguous();
  const auto* first = host.const_data_ptr<double>();
  return {first, first + host.numel()};
}

std::vector<double> values_of(
    const Metric& metric,
    const at::Tensor& outputs,
    const at::Tensor& targets) {
  return metric.values(sums_of(metric, outputs, targets));
}

} // namespace lockstep::test
