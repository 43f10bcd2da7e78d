// SPDX-License-Identifier: BSD-3-Clause
//
// nn.DataParallel for C++: splits the batch over devices, runs the module's
// replicas at the same time, joins the results and sums the gradients.
//   DataParallel model(net, {.devices = "cpu*2"});
//   loss(model->forward(images), targets).backward();
// Any forward will do: its arguments and its result may be tensors, values and
// containers of these (tensor/structure.h).
//
// One thing changes for the whole process: the first wrapper of several devices
// replaces the CPU kernels that draw random numbers (uniform_, dropout's
// bernoulli_, randperm and 20 more) by ones that look for the stream of the
// thread's replica, so that a run repeats, and then call the replaced kernel.
// Elsewhere results keep every bit: Note [Random kernels] in random_stream.h.
// Make that wrapper while no other thread draws random numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "lockstep/optim/torch_optimizer.h"
#include "lockstep/parallel/replica_group.h"
#include "lockstep/tensor/make_module.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/out_arguments.h"
#include "lockstep/tensor/structure.h"

#pragma GCC visibility push(default)
namespace lockstep {

/// What `DataParallelBase::share_threads` lends, until its end. Of several, the
/// last made ends first.
class ThreadLoan {
 public:
  explicit ThreadLoan(std::unique_ptr<parallel::IntraOpThreadsGuard> guard)
      : guard_(std::move(guard)) {}
  ~ThreadLoan() {
    for (const auto& take_back : borrowers_) {
      take_back();
    }
  }
  ThreadLoan(ThreadLoan&&) = default;
  ThreadLoan& operator=(ThreadLoan&&) = delete;
  ThreadLoan(const ThreadLoan&) = delete;
  ThreadLoan& operator=(const ThreadLoan&) = delete;

  /// Lends `workers` to an optimizer that can use them.
  template <class Optimizer>
  void lend(const Workers& workers, Optimizer& optimizer) {
    if constexpr (requires { optimizer.use_workers(workers); }) {
      optimizer.use_workers(workers);
      borrowers_.push_back([&optimizer] { optimizer.use_workers({}); });
    }
  }

 private:
  std::unique_ptr<parallel::IntraOpThreadsGuard> guard_;
  std::vector<std::function<void()>> borrowers_ = {};
};

/// What does not depend on the module's type. Holds the user's module as its
/// child `module`, so keys of the state dictionary start with "module." and
/// Python's wrapped files fit.
class DataParallelBase : public torch::nn::Module {
 public:
  /// Warns, as PyTorch does, if one device has less than 75 % of another's
  /// memory; of layers replaced without `replace_module`: tensor/modules.h.
  /// Errors: throws kInvalidArgument without a module; see `parse_devices` and
  /// `ReplicaGroup`.
  /// `default_factory`, if any, makes replicas where `clone()` does not work.
  DataParallelBase(
      const std::shared_ptr<torch::nn::Module>& module,
      const DataParallelOptions& options,
      ModuleFactory default_factory);
  ~DataParallelBase() override;
  DataParallelBase(const DataParallelBase&) = delete;
  DataParallelBase& operator=(const DataParallelBase&) = delete;

  /// One entry per replica.
  [[nodiscard]] std::span<const c10::Device> devices() const;
  /// The replicas behind this module.
  [[nodiscard]] ReplicaGroup& group() const noexcept {
    return *group_;
  }
  /// The default speed of a training loop beside CPU replicas, in one call:
  /// while the result lives, the calling thread's own operations (the loss)
  /// take a replica's number of threads (`ReplicaGroup::share_threads`), and
  /// Lockstep's optimizers step in the replicas' threads; LibTorch's may be
  /// named, too, and step as ever. Does nothing where there is nothing to gain.
  ///   const auto sharing = model->share_threads(sgd);
  /// Ownership: the optimizers outlive the result.
  /// Threads: the result ends in the thread that called.
  template <class... Optimizers>
  [[nodiscard]] ThreadLoan share_threads(Optimizers&... optimizers) const {
    ThreadLoan loan(group().share_threads());
    (loan.lend(group().workers(), optimizers), ...);
    return loan;
  }

 protected:
  [[noreturn]] static void raise_wrong_type(const torch::nn::Module& module);

 private:
  std::unique_ptr<ReplicaGroup> group_;
};

/// `std::cout << *model`: as Python's `print(model)`.
inline std::ostream& operator<<(
    std::ostream& stream,
    const DataParallelBase& model) {
  return stream << to_string(model);
}

namespace parallel {

/// Stands for any argument of a constructor of `M` but another `M`.
template <class M>
struct AnyArgument {
  template <class T>
    requires(!std::is_base_of_v<std::remove_cvref_t<T>, M>)
  // NOLINTNEXTLINE(google-explicit-constructor): stands for what it turns into
  operator T() const;
};

/// True if `M()` says all: no other constructor, and none with defaults, could
/// have made a module that differs.
template <class M>
inline constexpr bool kIsMadeWithoutArguments =
    std::is_default_constructible_v<M> &&
    !std::is_constructible_v<M, AnyArgument<M>> &&
    !std::is_constructible_v<M, AnyArgument<M>, AnyArgument<M>>;

/// Makes modules of the type of `module` if that is `M` itself and is made
/// without arguments; else there is none.
template <class M>
ModuleFactory default_factory(const M* module) {
  if constexpr (kIsMadeWithoutArguments<M>) {
    if (module != nullptr && typeid(*module) == typeid(M)) {
      return [] { return std::make_shared<M>(); };
    }
  }
  return {};
}

} // namespace parallel

/// DataParallel around an `M`.
template <class M>
class DataParallelImpl : public ModuleWrapper<DataParallelBase, M> {
 public:
  explicit DataParallelImpl(
      const std::shared_ptr<M>& module,
      const DataParallelOptions& options = {})
      : ModuleWrapper<DataParallelBase, M>(
            module,
            options,
            parallel::default_factory(module.get())) {}
  /// A module that no shared_ptr owns, on the stack for example.
  /// Ownership: it outlives this wrapper.
  explicit DataParallelImpl(M& module, const DataParallelOptions& options = {})
    requires std::derived_from<M, torch::nn::Module>
      : DataParallelImpl(share_module(module), options) {}

  /// Calls the module's forward on all devices. Tensors in `args` are split
  /// along `dim`, everything else is given to every replica; the results'
  /// tensors are joined along `dim`. On the CPU alone this is the module's
  /// forward and no more. What forward puts into an argument `T&`:
  /// Note [Arguments that forward fills in] in out_arguments.h.
  /// Errors: see `ReplicaGroup::forward`.
  template <class... Args>
  auto forward(Args&&... args) {
    using Result = std::decay_t<decltype(std::declval<M&>().forward(
        std::declval<std::decay_t<Args>&>()...))>;
    static_assert(
        kIsJoinable<Result>,
        "DataParallel joins tensors: forward must return tensors, containers "
        "of tensors, or a struct with a lockstep::Structure; return numbers as "
        "0-dimensional tensors");
    structure::CallerArguments<M, Args...> caller(
        this->group().placement(),
        args...);
    if (this->group().is_plain()) {
      return Result(caller.call_plain(this->wrapped()));
    }
    return run<Result>(caller);
  }

 private:
  template <class Result, class Caller>
  Result run(Caller& caller);
};

template <class M>
template <class Result, class Caller>
Result DataParallelImpl<M>::run(Caller& caller) {
  TensorList inputs = caller.tensors();
  // One undefined tensor stands for "only values": all replicas get those.
  if (inputs.empty() && Caller::kCount > 0) {
    inputs.emplace_back();
  }
  std::vector<std::unique_ptr<Result>> results(this->devices().size());
  const auto call = [&](std::size_t index,
                        torch::nn::Module& replica,
                        const TensorList& shards) {
    structure::CallOutputs outputs;
    results[index] = std::make_unique<Result>(
        caller.call(dynamic_cast<M&>(replica), index, shards, outputs));
    return outputs;
  };
  const TensorList outputs = caller.take(this->group().forward(inputs, call));
  return structure::rebuild(std::move(*results.front()), outputs);
}

/// Holder of `DataParallelImpl`.
template <class M>
class DataParallel
    : public WrapperHolder<DataParallelImpl<M>, M, DataParallelOptions> {
 public:
  using DataParallel::WrapperHolder::WrapperHolder;
};

template <class M>
DataParallel(std::shared_ptr<DataParallelImpl<M>>) -> DataParallel<M>;
template <class M>
DataParallel(std::shared_ptr<M>, DataParallelOptions = {}) -> DataParallel<M>;
template <IsModuleHolder H>
DataParallel(const H&, DataParallelOptions = {})
    -> DataParallel<typename H::ContainedType>;
template <std::derived_from<torch::nn::Module> M>
DataParallel(M&, DataParallelOptions = {}) -> DataParallel<M>;

/// Some Python programs wrap the optimizer as well and call
/// `optimizer.module.step()`. It is not needed: parameters live once, in the
/// wrapped module, so a plain optimizer steps all replicas. In PyTorch the
/// wrapper loses the optimizer's state dictionary; here it is passed through.
///   DataParallelOptimizer optimizer(sgd);
/// A shared optimizer behind the name `module()`: ours, or one of
/// torch::optim's SGD, Adam, AdamW, RMSprop and Adagrad.
template <class Optimizer>
class DataParallelOptimizer {
 public:
  explicit DataParallelOptimizer(std::shared_ptr<Optimizer> optimizer)
      : optimizer_(std::move(optimizer)) {}

  /// The optimizer itself: step, zero_grad, param_groups.
  [[nodiscard]] const std::shared_ptr<Optimizer>& module() const noexcept {
    return optimizer_;
  }
  /// `optimizer->module()`, as in `optimizer.module` of such a program.
  const DataParallelOptimizer* operator->() const noexcept {
    return this;
  }

  /// The inner optimizer's state.
  [[nodiscard]] auto state_dict() const {
    if constexpr (kIsTorchs) {
      return lockstep::state_dict(*optimizer_);
    } else {
      return optimizer_->state_dict();
    }
  }
  /// Loads the inner optimizer's state.
  template <class State>
  void load_state_dict(const State& state) const {
    if constexpr (kIsTorchs) {
      static_cast<void>(lockstep::load_state_dict(*optimizer_, state));
    } else {
      optimizer_->load_state_dict(state);
    }
  }

 private:
  static constexpr bool kIsTorchs =
      std::is_base_of_v<torch::optim::Optimizer, Optimizer>;

  std::shared_ptr<Optimizer> optimizer_;
};

} // namespace lockstep
#pragma GCC visibility pop
