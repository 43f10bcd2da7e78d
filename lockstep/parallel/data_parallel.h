// SPDX-License-Identifier: BSD-3-Clause
//
// nn.DataParallel for C++: splits the batch over devices, runs the module's
// replicas at the same time, joins the results and sums the gradients.
//   DataParallel model(net, {.devices = "cpu*2"});
//   loss(model->forward(images), targets).backward();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "lockstep/parallel/replica_group.h"

namespace lockstep {

/// How `DataParallel` uses devices.
struct DataParallelOptions {
  /// In the grammar of `parse_devices`: "cpu*2", "cuda:1,3". Empty: all CUDA
  /// devices, else all simulated ones if they are started, else the CPU, where
  /// calls pass straight through.
  std::string devices = {};
  /// Numbers of CUDA (or started simulated) devices, as in PyTorch, instead of
  /// `devices`.
  std::vector<std::int64_t> device_ids = {};
  /// Where results are gathered; the first device if empty.
  std::string output_device = {};
  /// Dimension that is split and joined.
  std::int64_t dim = 0;
  /// Threads inside one operation of one replica. 0: the process's number
  /// divided by the replicas, at least 1.
  int threads_per_replica = 0;
  /// Makes replicas of a module whose `clone()` does not work.
  ModuleFactory factory = {};
};

/// Holds the user's module as its child `module`, so keys of the state
/// dictionary start with "module." and Python's wrapped files fit.
class DataParallelImpl : public torch::nn::Module {
 public:
  /// Calls the module behind a base-class reference.
  using Call = std::function<at::Tensor(torch::nn::Module&, const at::Tensor&)>;

  DataParallelImpl(
      std::shared_ptr<torch::nn::Module> module,
      Call call,
      DataParallelOptions options);
  ~DataParallelImpl() override;

  /// Shape: as the module's forward, with the whole batch along `dim`.
  /// Errors: see `ReplicaGroup::forward`; with one device what the module
  /// throws.
  at::Tensor forward(const at::Tensor& input);

  /// The wrapped module: `model->module()`, or typed `model->module<Net>()`.
  /// Errors: throws kInvalidArgument if it is no `M`.
  template <class M = torch::nn::Module>
  [[nodiscard]] std::shared_ptr<M> module() const {
    if constexpr (std::is_same_v<M, torch::nn::Module>) {
      return module_;
    } else {
      auto typed = std::dynamic_pointer_cast<M>(module_);
      if (typed == nullptr) {
        raise_wrong_type();
      }
      return typed;
    }
  }

  /// One entry per replica.
  [[nodiscard]] std::span<const c10::Device> devices() const;
  /// The replicas behind this module.
  [[nodiscard]] ReplicaGroup& group() const noexcept {
    return *group_;
  }

 private:
  [[noreturn]] void raise_wrong_type() const;

  std::shared_ptr<torch::nn::Module> module_;
  std::unique_ptr<ReplicaGroup> group_;
};

/// Holder of `DataParallelImpl`, used like any LibTorch module. Wraps a module
/// holder or a shared_ptr of any class with `at::Tensor forward(at::Tensor)`.
class DataParallel : public torch::nn::ModuleHolder<DataParallelImpl> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): as LibTorch's holders
  DataParallel(std::nullptr_t) : ModuleHolder(nullptr) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as LibTorch's holders
  DataParallel(std::shared_ptr<DataParallelImpl> impl)
      : ModuleHolder(std::move(impl)) {}

  template <class M>
  explicit DataParallel(
      std::shared_ptr<M> module,
      DataParallelOptions options = {})
      : ModuleHolder(std::make_shared<DataParallelImpl>(
            std::move(module),
            &call<M>,
            std::move(options))) {}

  template <class M>
  explicit DataParallel(
      const torch::nn::ModuleHolder<M>& module,
      DataParallelOptions options = {})
      : DataParallel(module.ptr(), std::move(options)) {}

 private:
  template <class M>
  static at::Tensor call(torch::nn::Module& module, const at::Tensor& input) {
    return dynamic_cast<M&>(module).forward(input);
  }
};

} // namespace lockstep
