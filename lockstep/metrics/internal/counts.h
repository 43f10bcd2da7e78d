// SPDX-License-Identifier: BSD-3-Clause
//
// Counts of labels, on the device of the outputs and without waiting for it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace lockstep::internal {

/// How often each of 0, 1, ..., `bins` - 1 is among `indices` where
/// `is_counted`.
///
/// Shape: [bins] float64; indices int64 below `bins` where they are counted,
/// anything elsewhere; both of one shape. Counts are exact in any order: whole
/// numbers below 2^53.
at::Tensor count_each(
    const at::Tensor& indices,
    const at::Tensor& is_counted,
    std::int64_t bins);

/// Targets, and which of them are classes.
struct Labels {
  /// Shape: as the targets, int64.
  at::Tensor classes = {};
  /// Shape: the same, bool: neither ignored nor outside of the classes.
  at::Tensor is_counted = {};
  /// Shape: [] float64. How many are outside of 0, ..., `num_classes` - 1.
  at::Tensor outside = {};
};

Labels read_labels(
    const at::Tensor& targets,
    std::int64_t num_classes,
    std::optional<std::int64_t> ignore_index);

/// The same on the CPU, where a loop takes less time than a dozen operators:
/// calls `count(place, label)` for each target that is counted, in their order.
/// Returns how many are outside.
template <class Count>
double count_labels(
    const at::Tensor& targets,
    std::int64_t num_classes,
    std::optional<std::int64_t> ignore_index,
    const Count& count) {
  const at::Tensor labels = targets.to(at::kLong).contiguous();
  const auto* label = labels.const_data_ptr<std::int64_t>();
  double outside = 0;
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    if (label[i] == ignore_index) {
      continue;
    }
    if (label[i] >= 0 && label[i] < num_classes) {
      count(i, label[i]);
    } else {
      ++outside;
    }
  }
  return outside;
}

/// Targets of several labels: 0 or 1 each.
struct LabelFlags {
  /// Shape: as the targets, bool.
  at::Tensor is_set = {};
  /// Shape: [] float64. How many are neither 0 nor 1.
  at::Tensor outside = {};
};

LabelFlags read_flags(const at::Tensor& targets);

/// One row: the parts, flattened, one behind the other.
/// Shape: float64 each.
at::Tensor joined_sums(const std::vector<at::Tensor>& parts);

} // namespace lockstep::internal
