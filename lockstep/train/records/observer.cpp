// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/observer.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/strings.h"
#include "lockstep/train/settings/internal/run_names.h"

namespace lockstep::train {

std::optional<double> find_metric(
    std::span<const MetricValue> values,
    std::string_view name) {
  const auto found = std::ranges::find(values, name, &MetricValue::name);
  return found == values.end() || std::isnan(found->value)
             ? std::nullopt
             : std::optional(found->value);
}

std::optional<double> EpochRecord::value(std::string_view column) const {
  const bool is_test = column.starts_with(kTestPrefix);
  if (is_test && !test) {
    return std::nullopt;
  }
  const Score& score = is_test ? test.value() : train;
  column.remove_prefix((is_test ? kTestPrefix : kTrainPrefix).size());
  return column == kLossName ? score.loss : score.metric(column);
}

bool is_accuracy(const BestBy& by) {
  return by.column == kTestAccuracyColumn;
}

std::string best_text(const BestBy& by, std::optional<double> best) {
  return !best ? "no best epoch"
               : format(
                     "best {} {}",
                     is_accuracy(by) ? "Acc@1" : by.column,
                     shortest(*best));
}

} // namespace lockstep::train
