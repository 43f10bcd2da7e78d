// SPDX-License-Identifier: BSD-3-Clause
//
// Every number against scikit-learn and torchmetrics, also of parts that were
// added, of other dtypes and of tensors that are views.
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "lockstep/base/strings.h"
#include "tests/metrics/cases.h"

namespace lockstep {
namespace {

using nlohmann::json;
using test::MetricCase;

// Both work in float64, in other orders.
constexpr double kFloat64 = 1e-12;
// torchmetrics divides counts in float32.
constexpr double kFloat32 = 2e-6;

void expect_near(double ours, const json& wanted, double tolerance) {
  if (wanted.is_null()) {
    EXPECT_TRUE(std::isnan(ours)) << ours;
    return;
  }
  const double value = wanted;
  EXPECT_NEAR(ours, value, tolerance * std::max(1.0, std::abs(value)));
}

// Compares the numbers that `wanted` has.
void expect_values(
    const Metric& metric,
    const std::vector<double>& values,
    const json& wanted,
    double tolerance) {
  const std::vector<MetricInfo> infos = metric.infos();
  ASSERT_EQ(values.size(), infos.size());
  std::size_t found = 0;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    SCOPED_TRACE(infos[i].name);
    if (wanted.contains(infos[i].name)) {
      expect_near(values[i], wanted[infos[i].name], tolerance);
      ++found;
    }
  }
  EXPECT_EQ(found, wanted.size());
}

TEST(MetricOracle, CasesAreOfAllMetrics) {
  std::set<std::string> metrics;
  for (const MetricCase& c : test::metric_cases()) {
    metrics.insert(c.name.substr(0, c.name.find(':')));
    EXPECT_EQ(c.exact.size(), c.metric->infos().size()) << c.name;
  }
  EXPECT_EQ(metrics.size(), 8U);
  EXPECT_EQ(test::metric_cases().size(), 50U);
}

TEST(MetricOracle, ValuesEqualScikitLearns) {
  for (const MetricCase& c : test::metric_cases()) {
    SCOPED_TRACE(c.name);
    expect_values(
        *c.metric,
        test::values_of(*c.metric, c.outputs, c.targets),
        c.exact,
        kFloat64);
  }
}

TEST(MetricOracle, ValuesEqualTorchmetrics) {
  std::size_t compared = 0;
  for (const MetricCase& c : test::metric_cases()) {
    SCOPED_TRACE(c.name);
    expect_values(
        *c.metric,
        test::values_of(*c.metric, c.outputs, c.targets),
        c.torchmetrics,
        kFloat32);
    compared += c.torchmetrics.size();
  }
  EXPECT_GT(compared, 150U);
}

TEST(MetricOracle, TablesEqualScikitLearns) {
  for (const MetricCase& c : test::metric_cases()) {
    SCOPED_TRACE(c.name);
    const auto tables =
        c.metric->tables(test::sums_of(*c.metric, c.outputs, c.targets), {});
    for (const auto& [name, rows] : c.tables.items()) {
      SCOPED_TRACE(name);
      const auto table = std::ranges::find(tables, name, &MetricTable::name);
      ASSERT_NE(table, tables.end());
      ASSERT_EQ(table->rows.size(), rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        ASSERT_EQ(table->rows[i].values.size(), rows[i].size());
        ASSERT_EQ(table->columns.size(), rows[i].size());
        for (std::size_t j = 0; j < rows[i].size(); ++j) {
          SCOPED_TRACE(format("row {}, {}", i, table->columns[j]));
          expect_near(table->rows[i].values[j], rows[i][j], kFloat64);
        }
      }
    }
  }
}

// Errors of regressions are sums of rounded numbers; all else is counts.
bool is_counts(const MetricCase& c) {
  return !c.name.starts_with("regression");
}

void expect_same_sums(
    const MetricCase& c,
    const std::vector<double>& sums,
    const std::vector<double>& whole) {
  ASSERT_EQ(sums.size(), whole.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (is_counts(c)) {
      ASSERT_EQ(sums[i], whole[i]) << i;
    } else {
      ASSERT_NEAR(sums[i], whole[i], 1e-11 * std::max(1.0, whole[i])) << i;
    }
  }
}

TEST(MetricOracle, SumsOfPartsAreThoseOfTheWhole) {
  for (const MetricCase& c : test::metric_cases()) {
    SCOPED_TRACE(c.name);
    const auto whole = test::sums_of(*c.metric, c.outputs, c.targets);
    std::vector<double> added(whole.size());
    const std::int64_t samples = c.outputs.size(0);
    for (std::int64_t begin = 0; begin <= samples; begin += 7) { // last: empty
      const std::int64_t end = std::min(begin + 7, samples);
      const auto part = test::sums_of(
          *c.metric,
          c.outputs.slice(0, begin, end),
          c.targets.slice(0, begin, end));
      for (std::size_t i = 0; i < part.size(); ++i) {
        added[i] += part[i];
      }
    }
    expect_same_sums(c, added, whole);
  }
}

TEST(MetricOracle, EmptyBatchesAddZerosAndGiveNaN) {
  for (const MetricCase& c : test::metric_cases()) {
    SCOPED_TRACE(c.name);
    const auto sums = test::sums_of(
        *c.metric,
        c.outputs.slice(0, 0, 0),
        c.targets.slice(0, 0, 0));
    for (const double sum : sums) {
      EXPECT_EQ(sum, 0.0);
    }
    for (const double value : c.metric->values(sums)) {
      EXPECT_TRUE(std::isnan(value)) << value;
    }
  }
}

// The script's outputs are whole in every one of these.
TEST(MetricOracle, NarrowAndWideOutputsGiveTheSameSums) {
  for (const MetricCase& c : test::metric_cases()) {
    SCOPED_TRACE(c.name);
    const auto whole = test::sums_of(*c.metric, c.outputs, c.targets);
    for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kDouble}) {
      SCOPED_TRACE(c10::toString(type));
      expect_same_sums(
          c,
          test::sums_of(*c.metric, c.outputs.to(type), c.targets),
          whole);
    }
  }
}

TEST(MetricOracle, ViewsGiveTheSameSums) {
  for (const MetricCase& c : test::metric_cases()) {
    SCOPED_TRACE(c.name);
    const at::Tensor outputs = torch::stack({c.outputs, -c.outputs}, -1);
    const at::Tensor targets = torch::stack({c.targets, c.targets + 1}, -1);
    expect_same_sums(
        c,
        test::sums_of(*c.metric, outputs.select(-1, 0), targets.select(-1, 0)),
        test::sums_of(*c.metric, c.outputs, c.targets));
  }
}

TEST(MetricOracle, IntegerTargetsOfAnyWidthGiveTheSameSums) {
  for (const MetricCase& c : test::metric_cases()) {
    if (c.targets.scalar_type() != at::kLong) {
      continue;
    }
    SCOPED_TRACE(c.name);
    const auto whole = test::sums_of(*c.metric, c.outputs, c.targets);
    const bool is_small = c.targets.min().item<std::int64_t>() >= 0;
    for (const at::ScalarType type :
         {at::kInt, at::kShort, is_small ? at::kByte : at::kInt}) {
      expect_same_sums(
          c,
          test::sums_of(*c.metric, c.outputs, c.targets.to(type)),
          whole);
    }
  }
}

} // namespace
} // namespace lockstep
