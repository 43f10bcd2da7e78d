// SPDX-License-Identifier: BSD-3-Clause
//
// What a model is trained for: the loss of its outputs, what is measured, which
// number chooses the best epoch, what a prediction is.
//   Trainer trainer(config, {.own = {.model = net, .train_data = images,
//                                    .task = segmentation(21)}});
//   Task own{.loss = hinge, .metrics = {accuracy()}}; // a program's own
//   Task boxes{.loss = [](const Found& found, const Boxes& boxes) { ... }};
//
// Sums of losses and hits, from steps to the averages of an epoch.
//   Scoring scoring;
//   Scoring scoring(metrics);
//   const StepResult result(measure(loss, outputs, targets, metrics), samples);
//   scoring.add(result.read());
//   Score score = scoring.score(metrics, seconds);
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include "lockstep/data/dataset.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/metrics/metric.h"
#include "lockstep/train/observer.h"

#pragma GCC visibility push(default)
namespace lockstep::train {

/// What is measured of a batch.
using Metrics = std::vector<std::shared_ptr<const Metric>>;
/// Some of them.
using MetricSpan = std::span<const std::shared_ptr<const Metric>>;

/// All that they tell, in their order.
std::vector<MetricInfo> infos_of(MetricSpan metrics);

/// Adds `more` to `tables`, as columns and rows of the one of that name if
/// there is one: those that it has already are not added again. NaN is what
/// neither says.
void add_table(std::vector<MetricTable>& tables, MetricTable more);

/// How much of a batch's targets a loss counts.
using TargetCount = std::function<double(const at::Tensor& targets)>;

/// One batch in numbers.
struct BatchScore {
  float loss = 0.0F;
  /// Of all metrics, one after the other.
  std::vector<double> sums = {};
  std::int64_t samples = 0;
  /// How much the loss counts in an average; none: its samples.
  std::optional<double> weight = {};
};

/// Shape: [1 + sums] float64 on the device of `outputs`: the loss, which is [],
/// and the metrics' sums.
/// Errors: throws what the metrics throw.
at::Tensor measure(
    const at::Tensor& loss,
    const at::Tensor& outputs,
    const at::Tensor& targets,
    MetricSpan metrics);

/// A batch's numbers on their way to the host, which need not wait for them
/// before it queues the next batch. Threads: made and read by one thread.
class StepResult {
 public:
  /// `numbers` as `measure` gives them, for so many samples; `weight` as
  /// `BatchScore` has it. They may be overwritten by later work of the calling
  /// thread's current stream.
  StepResult(
      const at::Tensor& numbers,
      std::int64_t samples,
      std::optional<double> weight = {});

  /// Waits for the device.
  [[nodiscard]] BatchScore read() const;

 private:
  at::Tensor numbers_ = {};
  std::int64_t samples_ = 0;
  std::optional<double> weight_ = {};
  /// None on the CPU.
  std::optional<c10::Event> arrived_ = {};
};

/// `BatchScore::weight` of a batch, of `Task::counted`.
std::optional<double> weight_of(
    const TargetCount& counted,
    const at::Tensor& targets);

/// Sums over batches; a plain value, so that a checkpoint can hold it.
struct Scoring {
  Scoring() = default;
  explicit Scoring(MetricSpan metrics);

  /// Losses times their weights.
  double loss = 0.0;
  /// Of the losses: samples, or what `Task::counted` says.
  double weight = 0.0;
  /// Of all metrics, one after the other.
  std::vector<double> sums = {};
  std::int64_t samples = 0;

  /// A loss of no weight is not looked at: it may be no number.
  /// Errors: throws kInternal for sums of other metrics.
  void add(const BatchScore& batch);
  void add(const Scoring& other);
  /// As it was before the first batch.
  void clear();
  /// The sums over all ranks. Errors: as `ProcessGroup::sum`.
  [[nodiscard]] Scoring over(const dist::ProcessGroup& group) const;
  /// What the metrics say of what was added; the loss is an average. `seconds`
  /// is passed on. Errors: throws what the metrics throw.
  [[nodiscard]] Score score(MetricSpan metrics, double seconds) const;

  friend bool operator==(const Scoring&, const Scoring&) = default;
};

namespace internal {

/// Errors: throws kInvalidArgument (E_TASK).
[[noreturn]] void raise_other_type(
    std::string_view what,
    const AnyStructure& found,
    const std::type_info& expected);

/// What the function takes for outputs, or targets.
template <class T>
const T& given_as(const AnyStructure& value, std::string_view what) {
  const T* const found = value.as<T>();
  if (found == nullptr) {
    raise_other_type(what, value, typeid(T));
  }
  return *found;
}

template <class T>
const T& targets_as(const Batch& batch) {
  if constexpr (std::same_as<T, Batch>) {
    // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): the caller's
    return batch;
  } else if constexpr (std::same_as<T, at::Tensor>) {
    if (!batch.structure.is_empty()) {
      raise_other_type("targets", batch.structure, typeid(T));
    }
    return batch.targets;
  } else {
    return given_as<T>(batch.structure, "targets");
  }
}

/// The types of a function's two arguments, as they are kept.
template <class F>
struct TaskArguments;
template <class R, class A, class B>
struct TaskArguments<std::function<R(A, B)>> {
  using Outputs = std::remove_cvref_t<A>;
  using Targets = std::remove_cvref_t<B>;
};

template <class Result, class F>
std::function<Result(const AnyStructure&, const Batch&)> erased(F function) {
  if constexpr (std::is_pointer_v<F> || requires { function.target_type(); }) {
    if (!function) { // nothing to call
      return {};
    }
  }
  if constexpr (requires { std::function(function); }) {
    using Types = TaskArguments<decltype(std::function(function))>;
    return [function](const AnyStructure& outputs, const Batch& batch) mutable {
      return Result(function(
          given_as<typename Types::Outputs>(outputs, "outputs"),
          targets_as<typename Types::Targets>(batch)));
    };
  } else { // of any types: tensors
    return [function](const AnyStructure& outputs, const Batch& batch) mutable {
      return Result(function(
          given_as<at::Tensor>(outputs, "outputs"),
          targets_as<at::Tensor>(batch)));
    };
  }
}

} // namespace internal

/// What a program computes of the outputs and the targets of a batch, both on
/// the first device. Made from a function of any two types: what the model's
/// `forward` gives, and what the data has for targets, or the whole `Batch`,
/// whose images stay where the loader put them.
///   LossFunction loss = [](const Found& found, const Boxes& boxes) { ... };
template <class Result>
class TaskFunction {
 public:
  TaskFunction() = default;
  // Implicit on purpose: `{.loss = [](...) { ... }}`.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, TaskFunction>)
  // NOLINTNEXTLINE(google-explicit-constructor)
  TaskFunction(F function)
      : call_(internal::erased<Result>(std::move(function))) {}

  /// Errors: throws kInvalidArgument (E_TASK) for outputs or targets that are
  /// not of the function's types, and what the function throws.
  Result operator()(const AnyStructure& outputs, const Batch& batch) const {
    return call_(outputs, batch);
  }
  Result operator()(const at::Tensor& outputs, const at::Tensor& targets)
      const {
    return call_(AnyStructure(outputs), Batch{.targets = targets});
  }
  explicit operator bool() const {
    return static_cast<bool>(call_);
  }

 private:
  std::function<Result(const AnyStructure& outputs, const Batch& batch)> call_;
};

/// The number to be made small: [].
using LossFunction = TaskFunction<at::Tensor>;
/// Outputs and targets as metrics take them.
using MeasuredFunction = TaskFunction<std::pair<at::Tensor, at::Tensor>>;

/// Cross entropy, averaged over what is counted of the batch. Outputs [N,
/// classes, ...]; targets [N, ...] int64, or [N, classes, ...] shares of
/// classes. `class_weights`: Python's `weight`, one for each class, or none.
LossFunction cross_entropy(
    double label_smoothing = 0.0,
    std::int64_t ignore_index = -100,
    const std::vector<double>& class_weights = {});

struct Task {
  /// "segmentation"; of a program's own any name, or none.
  std::string name = {};
  /// Required.
  LossFunction loss = {};
  /// Of a test; none: `loss`.
  LossFunction test_loss = {};
  /// What `loss` divides the sum over a batch by, where that is not its
  /// samples: ranks and parts of a batch weigh their gradients by it, so that
  /// several do what one does. None, or targets that are no tensor: all samples
  /// count alike.
  TargetCount divisor = {};
  /// How many samples' worth of targets count in the averages of losses that
  /// are told, of the training and of a test. None: all.
  TargetCount counted = {};
  /// All are measured in a test, the first one in training, too.
  Metrics metrics = {};
  /// Counted in a test beside `metrics`, for what they tell of classes one by
  /// one (`Score::tables`).
  Metrics details = {};
  /// What `metrics` see; none: the outputs and the targets, which must be
  /// tensors then.
  MeasuredFunction measured = {};
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
/// top1, and top5 unless `num_classes` says that it is always 100.
/// `class_weights` as `cross_entropy` has them; the loss of a test has none.
/// `num_classes`: 0 if it is not known.
Task classification(
    double label_smoothing = 0.0,
    const std::vector<double>& class_weights = {},
    std::int64_t num_classes = 0);

/// A class for each pixel: outputs [N, classes, H, W], targets [N, H, W] int64,
/// of which `ignore_index` is not counted; none: 255, or -100 where 255 is a
/// class. Measures miou, dice and pixel_acc.
/// `class_weights` and `label_smoothing` as `cross_entropy` has them; the loss
/// of a test has neither.
Task segmentation(
    std::int64_t num_classes,
    std::optional<std::int64_t> ignore_index = {},
    const std::vector<double>& class_weights = {},
    double label_smoothing = 0.0);

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
/// targets that the task does not take; (E_METRIC) for an unknown metric;
/// (E_FLAGS) for class weights of a task whose loss has none.
Task task_for(
    const Dataset& data,
    std::string_view name = "auto",
    std::string_view metric = "auto",
    double label_smoothing = 0.0,
    const std::vector<double>& class_weights = {});

} // namespace lockstep::train
#pragma GCC visibility pop
