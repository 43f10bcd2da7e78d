// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/metrics/internal/counts.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace lockstep::internal {

at::Tensor count_each(
    const at::Tensor& indices,
    const at::Tensor& is_counted,
    std::int64_t bins) {
  // What is not counted falls into a bin behind the others. at::bincount would
  // ask the device how many bins there are, and wait.
  const at::Tensor places =
      at::where(is_counted, indices, bins).flatten().to(at::kLong);
  const auto options = indices.options().dtype(at::kDouble);
  at::Tensor counts = at::zeros({bins + 1}, options);
  counts.scatter_add_(0, places, at::ones({1}, options).expand_as(places));
  return counts.narrow(0, 0, bins);
}

Labels read_labels(
    const at::Tensor& targets,
    std::int64_t num_classes,
    std::optional<std::int64_t> ignore_index) {
  Labels labels{.classes = targets.detach().to(at::kLong)};
  const at::Tensor is_class =
      labels.classes.ge(0).logical_and_(labels.classes.lt(num_classes));
  labels.is_counted = is_class;
  at::Tensor is_outside = is_class.logical_not();
  if (ignore_index) {
    const at::Tensor is_kept = labels.classes.ne(*ignore_index);
    labels.is_counted = is_class.logical_and(is_kept);
    is_outside.logical_and_(is_kept);
  }
  labels.outside = is_outside.sum(at::kDouble);
  return labels;
}

LabelFlags read_flags(const at::Tensor& targets) {
  const at::Tensor flags = targets.detach();
  const at::Tensor is_set = flags.eq(1);
  return {
      .is_set = is_set,
      .outside =
          is_set.logical_or(flags.eq(0)).logical_not_().sum(at::kDouble)};
}

at::Tensor joined_sums(const std::vector<at::Tensor>& parts) {
  std::vector<at::Tensor> rows;
  rows.reserve(parts.size());
  for (const at::Tensor& part : parts) {
    rows.push_back(part.flatten());
  }
  return at::cat(rows);
}

} // namespace lockstep::internal
