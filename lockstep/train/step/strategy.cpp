// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/strategy.h"

#include <chrono>
#include <exception>
#include <string_view>
#include <tuple>

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/autocast.h"
#include "lockstep/tensor/internal/kept_parts.h"
#include "lockstep/tensor/internal/trace_spans.h"
#include "lockstep/train/step/loss_place.h"
#include "lockstep/train/step/memory_use.h"
#include "lockstep/train/step/step_graphs.h"

namespace lockstep::train {

Strategy::Strategy(
    std::shared_ptr<torch::nn::Module> net,
    StrategyOptions options)
    : net_(std::move(net)), options_(std::move(options)) {
  if (!options_.task.test_loss) {
    options_.task.test_loss = options_.task.loss;
  }
  test_metrics_ = options_.task.metrics;
  test_metrics_.insert(
      test_metrics_.end(),
      options_.task.details.begin(),
      options_.task.details.end());
  if (options_.cuda_graphs) {
    graphs_ = std::make_unique<StepGraphs>(options_.devices.front());
  }
}

Strategy::~Strategy() = default;

void Strategy::lend(const Workers& workers) {
  if (options_.optimizer) {
    lent_.lend(workers, **options_.optimizer);
  }
}

Optimizer& Strategy::optimizer() const {
  if (!options_.optimizer) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "train.strategy",
         .message = "the strategy was made without an optimizer",
         .hint = "make_strategy(net, {.optimizer = ...})"});
  }
  return **options_.optimizer;
}

void Strategy::update() {
  const auto threads = share_threads();
  optimizer().step();
}

struct Strategy::Outcome {
  at::Tensor loss = {};
  /// What the metrics see.
  at::Tensor outputs = {};
  at::Tensor targets = {};
};

namespace {

at::Tensor on(const at::Tensor& tensor, c10::Device device) {
  return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/true);
}

// With the targets on `device`, where the outputs are.
Batch with_targets_on(Batch batch, c10::Device device) {
  if (batch.targets.defined()) {
    batch.targets = on(batch.targets, device);
  }
  batch.structure.visit(
      [&](at::Tensor& tensor) { tensor = on(tensor, device); });
  return batch;
}

[[noreturn]] void loss_failed(std::string_view text) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.loss",
       .message = format("the task's loss threw: {}", text),
       .hint =
           "Task::loss gets the model's outputs and the targets of a batch; "
           "look at those of these samples",
       .detail = std::string(kLossFailed)});
}

// What a loss throws seldom says where it comes from: "map::at".
at::Tensor loss_of(
    const LossFunction& loss,
    const AnyStructure& outputs,
    const Batch& batch) {
  try {
    return loss(outputs, batch);
  } catch (const Exception&) {
    throw; // which says what, and where
  } catch (const std::exception& error) {
    if (is_out_of_memory(std::current_exception())) {
      throw;
    }
    const auto* const torchs = dynamic_cast<const c10::Error*>(&error);
    loss_failed(
        torchs == nullptr ? error.what() : torchs->what_without_backtrace());
  }
}

void check_loss(const at::Tensor& loss) {
  if (loss.defined() && loss.numel() == 1) {
    return;
  }
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.step",
       .message = format(
           "the loss must be one number; the task's loss gave {}",
           loss.defined() ? format("a tensor {}", c10::str(loss.sizes()))
                          : std::string("an undefined tensor")),
       .hint = "average it over the batch: loss.mean()",
       .detail = "E_LOSS"});
}

// What metrics see if the task does not say it.
void check_measured(const AnyStructure& outputs, const Batch& batch) {
  const bool are_tensors = outputs.as<at::Tensor>() != nullptr;
  if (are_tensors && batch.structure.is_empty()) {
    return;
  }
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.step",
       .message = format(
           "metrics take tensors; the {} {}",
           are_tensors ? "data have" : "model gives",
           (are_tensors ? batch.structure : outputs).describe()),
       .hint = "Task::measured says what the metrics see of them",
       .detail = "E_TASK"});
}

} // namespace

Strategy::Outcome Strategy::outcome(const Batch& batch, Pass pass) {
  const Task& task = options_.task;
  const LossFunction& loss = pass == Pass::kTest ? task.test_loss : task.loss;
  std::optional<Autocast> autocast;
  if (options_.autocast) {
    autocast.emplace(options_.devices.front().type(), *options_.autocast);
  }
  const AnyStructure outputs = forward(batch.images, pass);
  const auto* const tensor = outputs.as<at::Tensor>();
  const Batch here = with_targets_on(
      batch,
      tensor == nullptr ? options_.devices.front() : tensor->device());
  Outcome found{.loss = loss_of(loss, outputs, here)};
  check_loss(found.loss);
  if (task.measured) {
    std::tie(found.outputs, found.targets) = task.measured(outputs, here);
    return found;
  }
  if (!task.metrics.empty()) {
    check_measured(outputs, here);
  }
  const bool is_seen = pass == Pass::kTest ? !test_metrics_.empty()
                                           : !task.train_metrics().empty();
  if (is_seen && tensor != nullptr && here.structure.is_empty()) {
    found.outputs = *tensor;
    found.targets = here.targets;
  }
  return found;
}

StepResult Strategy::run(
    const Batch& batch,
    double weight,
    const std::function<at::Tensor(const Batch&)>& work) {
  if (graphs_ && !batch.structure.is_empty()) {
    raise(
        {.code = ErrorCode::kUnsupported,
         .op = "train.graphs",
         .message = "targets that are no tensor cannot be part of a recording",
         .hint = "leave out --cuda-graphs",
         .detail = "E_GRAPH"});
  }
  return {
      graphs_ ? graphs_->run(*net_, batch, weight, work) : work(batch),
      batch.size(),
      weight_of(task().counted, batch.targets)};
}

StepResult Strategy::step(const Batch& batch, const StepOptions& how) {
  const auto threads = share_threads();
  if (!net_->is_training()) {
    net_->train(true);
  }
  const auto held = how.exchanges ? nullptr : without_exchange();
  const Pass pass = how.weights_are_counted ? Pass::kCountedStep : Pass::kStep;
  const auto work = [this, pass, weight = how.weight](const Batch& given) {
    using Clock = std::chrono::steady_clock;
    const auto begun = Clock::now();
    const Outcome found = [&] {
      const TraceSpan span("forward");
      return outcome(given, pass);
    }();
    const auto middle = Clock::now();
    const TraceSpan span("backward");
    (weight == 1.0 ? found.loss : found.loss * weight).backward();
    seconds_.forward += std::chrono::duration<double>(middle - begun).count();
    seconds_.backward +=
        std::chrono::duration<double>(Clock::now() - middle).count();
    return measure(
        found.loss,
        found.outputs,
        found.targets,
        task().train_metrics());
  };
  return run(batch, how.weight, work);
}

StepResult Strategy::test(const Batch& batch) {
  const at::NoGradGuard no_grad;
  const auto threads = share_threads();
  const EvaluationMode testing(*net_);
  const auto work = [this](const Batch& given) {
    const Outcome found = outcome(given, Pass::kTest);
    return measure(found.loss, found.outputs, found.targets, test_metrics());
  };
  return run(batch, /*weight=*/1.0, work);
}

at::Tensor Strategy::predict(const at::Tensor& images) {
  return internal::given_as<at::Tensor>(outputs(images), "outputs");
}

AnyStructure Strategy::outputs(const at::Tensor& images) {
  const at::NoGradGuard no_grad;
  const auto threads = share_threads();
  const EvaluationMode testing(*net_);
  std::optional<Autocast> autocast;
  if (options_.autocast) {
    autocast.emplace(options_.devices.front().type(), *options_.autocast);
  }
  return forward(images, Pass::kTest);
}

namespace {

[[noreturn]] void contradiction(std::string message, std::string hint) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "train.strategy",
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = "E_FLAGS"});
}

} // namespace

Spread spread_of(const StrategyOptions& options) {
  static_cast<void>(options.group.size()); // throws where it is not ours
  const std::size_t devices = options.devices.size();
  const bool is_distributed =
      options.name == "distributed" || options.name == "ddp";
  if (options.group && options.name != "auto" && !is_distributed) {
    contradiction(
        format(
            "--strategy {} trains in one process; this is rank {} of {}",
            options.name,
            options.group.rank(),
            options.group.size()),
        "--strategy distributed trains in several");
  }
  if (is_distributed && !options.group) {
    contradiction(
        "--strategy distributed needs a process group",
        "init_process_group() makes one, also of a single process");
  }
  if (options.group && devices > 1) {
    contradiction(
        format("a rank trains on one device; --devices names {}", devices),
        "one device for each rank of this machine");
  }
  if (options.name == "single" && devices > 1) {
    contradiction(
        format(
            "--strategy single uses one device; --devices names {}",
            devices),
        "--strategy data_parallel uses all of them");
  }
  const Spread spread = options.group ? Spread::kRanks
                        : devices > 1 || options.name == "data_parallel"
                            ? Spread::kReplicas
                            : Spread::kSingle;
  if (options.cuda_graphs && spread != Spread::kSingle) {
    contradiction(
        "--cuda-graphs records the steps of a single device",
        "name one device, without a group or --strategy data_parallel");
  }
  return spread;
}

} // namespace lockstep::train
