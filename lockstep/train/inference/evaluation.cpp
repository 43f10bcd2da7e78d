// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/inference/evaluation.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>

#include "lockstep/base/internal/uncounted.h"
#include "lockstep/data/loader.h"
#include "lockstep/train/inference/outputs.h"

namespace lockstep::train {
namespace {

void add_metric(Metrics& metrics, std::unique_ptr<Metric> metric) {
  metrics.emplace_back(std::move(metric));
}

// Each sample's own. Shape: [N] float32 on the device of `outputs`.
at::Tensor losses_of(
    const at::Tensor& outputs,
    const at::Tensor& targets,
    OutputKind kind) {
  const auto none = at::Reduction::None;
  switch (kind) {
    case OutputKind::kClasses:
      return at::cross_entropy_loss(outputs, targets, /*weight=*/{}, none);
    case OutputKind::kMasks: {
      const std::int64_t ignored = uncounted_pixel(outputs.size(1));
      const at::Tensor pixels = at::cross_entropy_loss(
          outputs,
          targets,
          /*weight=*/{},
          none,
          ignored);
      const at::Tensor counted = targets.ne(ignored).flatten(1).sum(1);
      return pixels.flatten(1).sum(1) / counted.clamp_min(1);
    }
    case OutputKind::kLabels:
      return at::binary_cross_entropy_with_logits(
                 outputs,
                 targets,
                 /*weight=*/{},
                 /*pos_weight=*/{},
                 none)
          .mean(1);
    case OutputKind::kValues:
    case OutputKind::kMaps:
      break;
  }
  const at::Tensor squares = at::mse_loss(outputs, targets, none);
  return squares.dim() > 1 ? squares.flatten(1).mean(1) : squares;
}

// Keeps the samples of the highest loss.
class WorstList {
 public:
  explicit WorstList(std::int64_t count)
      : count_(static_cast<std::size_t>(count)) {}

  /// `first`: the number of the batch's first sample in `data`.
  void add(
      const Dataset& data,
      std::size_t part,
      std::int64_t first,
      const at::Tensor& losses,
      const at::Tensor& outputs,
      const at::Tensor& targets) {
    const at::Tensor numbers = losses.to(at::kCPU, at::kDouble).contiguous();
    const auto* loss = numbers.const_data_ptr<double>();
    for (std::int64_t i = 0; i < numbers.numel(); ++i) {
      if (samples_.size() == count_ &&
          (count_ == 0 || !is_above(loss[i], samples_.back().loss))) {
        continue;
      }
      WorstSample sample{
          .part = part,
          .index = first + i,
          .name = data.sample_name(first + i),
          .loss = loss[i],
          .target = targets[i].to(at::kCPU).clone(),
          .output = outputs[i].to(at::kCPU).clone()};
      const auto place = std::ranges::upper_bound(
          samples_,
          sample.loss,
          is_above,
          &WorstSample::loss);
      samples_.insert(place, std::move(sample));
      if (samples_.size() > count_) {
        samples_.pop_back();
      }
    }
  }

  std::vector<WorstSample> take() {
    return std::move(samples_);
  }

 private:
  std::size_t count_;
  std::vector<WorstSample> samples_;
};

std::vector<MetricTable> tables_of(
    const Metrics& metrics,
    const std::vector<double>& sums,
    const TrainedData& data) {
  std::vector<MetricTable> tables;
  const std::vector<std::string> names = data.names();
  std::span<const double> left = sums;
  for (const auto& metric : metrics) {
    const auto size = static_cast<std::size_t>(metric->size());
    for (MetricTable& table : metric->tables(left.first(size), names)) {
      add_table(tables, std::move(table));
    }
    left = left.subspan(size);
  }
  return tables;
}

// The first of each name.
void keep_names_once(Evaluation& found) {
  std::vector<MetricInfo> infos;
  std::vector<MetricValue> values;
  for (std::size_t i = 0; i < found.infos.size(); ++i) {
    const std::string& name = found.infos[i].name;
    if (std::ranges::find(infos, name, &MetricInfo::name) == infos.end()) {
      infos.push_back(found.infos[i]);
      values.push_back(found.score.metrics[i]);
    }
  }
  found.infos = std::move(infos);
  found.score.metrics = std::move(values);
}

} // namespace

Metrics all_metrics(const Task& task, const TrainedData& data) {
  Metrics metrics = task.metrics;
  const std::int64_t outputs = data.num_outputs();
  switch (output_kind(data)) {
    case OutputKind::kClasses:
      add_metric(metrics, confusion(outputs));
      if (outputs > 1) {
        add_metric(metrics, auroc(outputs));
      }
      break;
    case OutputKind::kMasks:
      add_metric(
          metrics,
          confusion(outputs, {.ignore_index = uncounted_pixel(outputs)}));
      break;
    case OutputKind::kLabels:
      add_metric(metrics, multilabel_auroc(outputs));
      break;
    case OutputKind::kValues:
      if (outputs > 1) {
        add_metric(metrics, regression_metrics({.num_outputs = outputs}));
      }
      break;
    case OutputKind::kMaps:
      break;
  }
  return metrics;
}

Evaluation evaluate_all(
    Strategy& strategy,
    const std::vector<std::shared_ptr<const Dataset>>& parts,
    const TrainedData& data,
    const Task& task,
    const EvaluationOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const at::NoGradGuard no_grad;
  const OutputKind kind = output_kind(data);
  const Metrics metrics = all_metrics(task, data);
  const LossFunction& loss = task.test_loss ? task.test_loss : task.loss;
  Scoring scoring(metrics);
  WorstList worst(options.worst);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    Loader<Batch> loader(
        parts[part],
        {.batch_size = options.batch_size, .workers = options.workers});
    std::int64_t first = 0;
    for (const Batch& batch : loader) {
      const at::Tensor outputs = strategy.predict(batch.images).to(at::kFloat);
      const at::Tensor targets = batch.targets.to(outputs.device());
      scoring.add(
          StepResult(
              measure(loss(outputs, targets), outputs, targets, metrics),
              batch.size(),
              weight_of(task.counted, batch.targets))
              .read());
      worst.add(
          *parts[part],
          part,
          first,
          losses_of(outputs, targets, kind),
          outputs,
          targets);
      first += batch.size();
    }
  }
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  Evaluation found{
      .samples = scoring.samples,
      .score = scoring.score(metrics, elapsed.count()),
      .infos = infos_of(metrics),
      .tables = tables_of(metrics, scoring.sums, data),
      .worst = worst.take()};
  keep_names_once(found);
  return found;
}

} // namespace lockstep::train
