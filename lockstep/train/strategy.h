// SPDX-License-Identifier: BSD-3-Clause
//
// How one step is spread over devices. The trainer's loop is the same for all:
//   SGD sgd(*net, {.lr = 0.1});
//   auto strategy = make_strategy(net, {.devices = devices, .optimizer = sgd});
//   strategy->optimizer().zero_grad();
//   StepResult result = strategy->step(batch);
//   strategy->update();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "lockstep/data/dataset.h"
#include "lockstep/distributed/distributed_data_parallel.h"
#include "lockstep/distributed/process_group.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/parallel/data_parallel.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/rng.h"
#include "lockstep/train/state_part.h"
#include "lockstep/train/task.h"

#pragma GCC visibility push(default)
namespace lockstep::train {

class StepGraphs;

struct StrategyOptions {
  /// At least one; the CPU named twice holds two replicas.
  std::vector<c10::Device> devices = {c10::Device(c10::kCPU)};
  /// "single", "data_parallel", "distributed", or "auto": the last with a
  /// group, the second for several devices.
  std::string name = "auto";
  /// Ranks that train together, each on one device.
  dist::ProcessGroup group = {};
  /// Of `update`, over parameters of the module; none: the program changes them
  /// itself. Ownership: as `OptimizerRef`.
  std::optional<OptimizerRef> optimizer = {};
  Task task = classification();
  /// Forward and loss under an `Autocast` to it; none: as they are.
  std::optional<c10::ScalarType> autocast = {};
  /// Steps of a single CUDA device as CUDA graphs (step/step_graphs.h): what
  /// the model and the losses do on the host happens once.
  bool cuda_graphs = false;
};

/// A step whose gradients are added up over several batches.
struct StepOptions {
  /// Factor of the loss in the backward pass.
  double weight = 1.0;
  /// Ranks average their gradients; off: a later batch's step or `exchange`
  /// does it for all.
  bool exchanges = true;
  /// Since the last pass LibTorch's version counters have seen every write to a
  /// weight: devices keep the copies of those that none has changed. Off: all
  /// are sent, since a program may have written past them (`p.data()`).
  bool weights_are_counted = false;
};

/// Runs a module on one or more devices, in the mode that a pass needs, and
/// changes its weights. Threads: one caller at a time.
class Strategy {
 public:
  virtual ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  /// Forward, loss and backward of one batch, in training mode but for modules
  /// that the program froze: a module in evaluation mode is switched with all
  /// that is in it, as `train()` does; one in training mode is left as it is,
  /// so what is frozen in it stays frozen. Gradients are added to those that
  /// are there. Pinned memory of `batch` is read until the result is.
  StepResult step(const Batch& batch, const StepOptions& how = {});
  /// Forward and loss, in testing mode and without gradients. Weights that are
  /// written between two tests past LibTorch's version counters (`p.data()`)
  /// are seen after `step`, `update` or `begin_test`.
  StepResult test(const Batch& batch);
  /// Ranks average what steps without `exchanges` have added up. Every rank
  /// calls it.
  virtual void exchange() {}
  /// What the model makes of samples, on the first device: in testing mode,
  /// without gradients, in the type that `autocast` gives it.
  AnyStructure outputs(const at::Tensor& images);
  /// The same of a model whose outputs are one tensor.
  /// Errors: throws kInvalidArgument (E_TASK) for others.
  at::Tensor predict(const at::Tensor& images);
  /// A step of the optimizer, with the threads of the devices.
  /// Errors: throws kInvalidArgument without an optimizer; as its `step`.
  virtual void update();
  /// Errors: throws kInvalidArgument without one.
  [[nodiscard]] Optimizer& optimizer() const;
  /// Before a round of `test`: all ranks get rank 0's buffers, with which it
  /// saves. Every rank calls it.
  virtual void begin_test() {}
  /// `DistributedDataParallel::bucket_layout`; empty where nothing is averaged
  /// over ranks. Every rank calls it.
  [[nodiscard]] virtual BucketLayout bucket_layout() {
    return {};
  }
  [[nodiscard]] const Task& task() const {
    return options_.task;
  }
  /// What `test` counts: the task's metrics, then its details.
  [[nodiscard]] MetricSpan test_metrics() const {
    return test_metrics_;
  }
  /// How long the host has been in the forward and the backward passes of
  /// steps, since the last call. Units: seconds.
  struct PassSeconds {
    double forward = 0.0;
    double backward = 0.0;
  };
  PassSeconds take_seconds() {
    return std::exchange(seconds_, {});
  }
  /// Goes on with a saved one; before the first step.
  virtual void set_bucket_layout(const BucketLayout& /*layout*/) {}
  /// "single", "data_parallel" or "distributed".
  [[nodiscard]] virtual std::string name() const = 0;

 protected:
  /// What a forward pass is for.
  /// `kCountedStep`: `StepOptions::weights_are_counted`.
  enum class Pass { kStep, kCountedStep, kTest };

  /// `net` is the program's module, which is switched between training and
  /// testing; no wrapper, whose mode would be another one.
  Strategy(std::shared_ptr<torch::nn::Module> net, StrategyOptions options);

  /// Output is on the first device. The module is in the mode of `pass`.
  virtual AnyStructure forward(const at::Tensor& images, Pass pass) = 0;
  /// Lends threads to the optimizer, until the strategy ends.
  void lend(const Workers& workers);
  /// Held during a step after which ranks do not average.
  virtual std::shared_ptr<void> without_exchange() {
    return nullptr;
  }
  /// Held during a step: see `ReplicaGroup::share_threads`.
  virtual std::unique_ptr<parallel::IntraOpThreadsGuard> share_threads() {
    return nullptr;
  }
  [[nodiscard]] const StrategyOptions& options() const {
    return options_;
  }

 private:
  struct Outcome;
  /// Forward and loss.
  /// Errors: throws kInvalidArgument (E_LOSS) for a loss that is no scalar.
  Outcome outcome(const Batch& batch, Pass pass);
  /// `weight`: the loss's factor in the backward pass.
  StepResult run(
      const Batch& batch,
      double weight,
      const std::function<at::Tensor(const Batch&)>& work);

  std::shared_ptr<torch::nn::Module> net_;
  StrategyOptions options_;
  Metrics test_metrics_;
  PassSeconds seconds_ = {};
  /// The threads of `lend`: the optimizer may live longer than they do.
  ThreadLoan lent_{nullptr};
  /// Null unless steps are graphs.
  std::unique_ptr<StepGraphs> graphs_;
};

/// The module as it is, on one device.
template <class M>
class SingleDevice final : public Strategy {
 public:
  SingleDevice(const std::shared_ptr<M>& model, StrategyOptions options)
      : Strategy(model, std::move(options)), model_(model) {}

  [[nodiscard]] std::string name() const override {
    return "single";
  }

 private:
  AnyStructure forward(const at::Tensor& images, Pass /*pass*/) override {
    return AnyStructure(model_->forward(images.to(
        options().devices.front(),
        images.scalar_type(),
        /*non_blocking=*/true)));
  }

  std::shared_ptr<M> model_;
};

/// The module wrapped in a `DataParallel`.
template <class M>
class ReplicatedDevices final : public Strategy {
 public:
  ReplicatedDevices(const std::shared_ptr<M>& model, StrategyOptions given)
      : Strategy(model, std::move(given)),
        // What is not counted is told: `forward`.
        model_(model, {.devices = options().devices, .trust_versions = true}) {
    lend(model_->group().workers());
  }

  void update() override {
    Strategy::update();
    may_have_changed_ = true;
  }
  void begin_test() override {
    may_have_changed_ = true;
  }
  [[nodiscard]] std::string name() const override {
    return "data_parallel";
  }

 private:
  AnyStructure forward(const at::Tensor& images, Pass pass) override {
    // The batches of one test share what the devices hold.
    if (pass == Pass::kStep || (pass == Pass::kTest && may_have_changed_)) {
      model_->group().forget_sent();
    }
    may_have_changed_ = pass != Pass::kTest;
    return AnyStructure(model_->forward(images));
  }
  std::unique_ptr<parallel::IntraOpThreadsGuard> share_threads() override {
    return model_->group().share_threads();
  }

  DataParallel<M> model_;
  /// Weights, since the last test sent them to the devices.
  bool may_have_changed_ = true;
};

/// The module in each of several processes, wrapped in a
/// `DistributedDataParallel`.
template <class M>
class DistributedRanks final : public Strategy {
 public:
  DistributedRanks(const std::shared_ptr<M>& model, StrategyOptions given)
      : Strategy(model, std::move(given)),
        model_(
            model,
            {.process_group = options().group,
             .gradient_as_bucket_view = true}) {}

  std::shared_ptr<void> without_exchange() override {
    return std::make_shared<DistributedDataParallelBase::NoSync>(*model_);
  }
  void exchange() override {
    model_->average_gradients();
  }
  void begin_test() override {
    for (at::Tensor& buffer : model_->buffers()) {
      options().group.broadcast(buffer);
    }
  }
  [[nodiscard]] BucketLayout bucket_layout() override {
    return model_->bucket_layout();
  }
  void set_bucket_layout(const BucketLayout& layout) override {
    model_->set_bucket_layout(layout);
  }
  [[nodiscard]] std::string name() const override {
    return "distributed";
  }

 private:
  AnyStructure forward(const at::Tensor& images, Pass pass) override {
    // A rank tests as many batches as it has: nothing is exchanged then.
    return AnyStructure(
        pass == Pass::kTest
            ? model_->module()->forward(images.to(options().devices.front()))
            : model_->forward(images));
  }

  DistributedDataParallel<M> model_;
};

/// How a step can be spread.
enum class Spread { kSingle, kReplicas, kRanks };

/// What the options ask for.
/// Errors: throws kInvalidArgument for what does not go together: "single" with
/// several devices, "distributed" without a group or with several devices for a
/// rank, the others with one, and graphs for anything but one device.
Spread spread_of(const StrategyOptions& options);

/// Moves `model`, any module with `forward(Tensor)`, to the first device. What
/// it gives is a tensor, or any structure of them (structure.h) that the task
/// takes. CPU replicas share the process's threads (`at::get_num_threads`)
/// evenly. Errors: as `spread_of`, `DataParallel`, `DistributedDataParallel`.
template <class M>
std::unique_ptr<Strategy> make_strategy(
    const std::shared_ptr<M>& model,
    StrategyOptions options = {}) {
  const Spread spread = spread_of(options);
  model->to(options.devices.front());
  if (spread == Spread::kRanks) {
    return std::make_unique<DistributedRanks<M>>(model, std::move(options));
  }
  if (spread == Spread::kReplicas) {
    return std::make_unique<ReplicatedDevices<M>>(model, std::move(options));
  }
  return std::make_unique<SingleDevice<M>>(model, std::move(options));
}

/// A module whose type is known where it is given, and forgotten later.
class AnyModel {
 public:
  AnyModel() = default;
  // Implicit on purpose: `{.model = net}`.
  template <class M>
  // NOLINTNEXTLINE(google-explicit-constructor)
  AnyModel(const std::shared_ptr<M>& model)
      : module_(model),
        make_([model](StrategyOptions options) {
          return make_strategy(model, std::move(options));
        }),
        forward_([](torch::nn::Module& module, const at::Tensor& x) {
          static_cast<void>(dynamic_cast<M&>(module).forward(x));
        }) {}
  template <class M>
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  AnyModel(const torch::nn::ModuleHolder<M>& model) : AnyModel(model.ptr()) {}

  [[nodiscard]] bool is_empty() const {
    return module_ == nullptr;
  }
  [[nodiscard]] torch::nn::Module& module() const {
    return *module_;
  }
  [[nodiscard]] std::unique_ptr<Strategy> strategy(
      StrategyOptions options) const {
    return make_(std::move(options));
  }

  /// Calls a copy of the module, as it trains, with `x`, both on the CPU. The
  /// module and all random numbers stay as they are.
  /// Errors: throws what `copy_of` and `forward` throw.
  void try_forward(const at::Tensor& x) const {
    const RngStateGuard guard;
    const ModuleCopy made = lockstep::copy_of(*module_);
    const StandInGuard own(made.stand_ins);
    const auto& copy = made.module;
    copy->to(at::kCPU);
    // As a step: what a program has frozen in a net that trains stays frozen.
    if (!copy->is_training()) {
      copy->train();
    }
    forward_(*copy, x);
  }

 private:
  std::shared_ptr<torch::nn::Module> module_;
  std::function<std::unique_ptr<Strategy>(StrategyOptions)> make_;
  std::function<void(torch::nn::Module&, const at::Tensor&)> forward_;
};

/// `buckets`: how the ranks of `strategy` average their gradients, a list of
/// lists of numbers. A checkpoint may lack it. Every rank saves.
StatePart bucket_part(Strategy& strategy);

} // namespace lockstep::train
#pragma GCC visibility pop
