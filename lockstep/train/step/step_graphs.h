// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of one device as recordings, one for each shape of batch:
//   StepGraphs graphs(device);
//   numbers = graphs.run(net, batch, [&](const Batch& at_rest) { ... });
// The host then starts a step at once, not kernel by kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include "lockstep/data/dataset.h"
#include "lockstep/device/device_graph.h"

namespace lockstep::train {

/// Threads: one at a time.
class StepGraphs {
 public:
  /// Forward and loss of a batch, and backward when the module trains. Returns
  /// a tensor of the device. The same work at each call with the same weight.
  using Work = std::function<at::Tensor(const Batch&)>;

  /// Errors: as `make_device_graph`.
  explicit StepGraphs(c10::Device device);

  /// What `work(batch)` computes, with the same bits. `weight` is the factor of
  /// the loss in the backward pass. The first batch of a shape and weight runs
  /// as it is; a second one after it is recorded, and replayed from then on. So
  /// is no batch whose gradients are added to others. A recording is made anew
  /// when tensors, their `requires_grad` or modules' training modes are not
  /// those that it was made with; other changes inside of `net.forward`, such
  /// as a condition on a member, go unseen.
  ///
  /// The result and the gradients are the recording's: the next step of this
  /// shape overwrites them.
  /// Errors: rethrows what `work` throws; as `DeviceGraph::record`; throws
  /// kUnsupported for work that draws random numbers on the host.
  at::Tensor run(
      torch::nn::Module& net,
      const Batch& batch,
      double weight,
      const Work& work);

 private:
  /// What a recording holds for.
  struct Conditions {
    bool trains = false;
    /// Of the loss: a number in the recording.
    double weight = 1.0;
    std::vector<std::int64_t> sizes = {};
    /// The module as it is: where its tensors lie, and what they take part in.
    std::vector<std::uintptr_t> state = {};
    /// Those of an earlier batch of the same step.
    bool has_gradients = false;

    static Conditions
    of(const torch::nn::Module& net, const Batch& batch, double weight);
    void add(const torch::nn::Module& module);
    [[nodiscard]] bool has_shape_of(const Conditions& other) const {
      return trains == other.trains && weight == other.weight &&
             sizes == other.sizes;
    }
  };
  struct Recording {
    Conditions conditions = {};
    /// On the device; written before each replay.
    Batch inputs = {};
    std::unique_ptr<DeviceGraph> graph = {};
    at::Tensor result = {};
    /// Parameters, each with its gradient.
    std::vector<std::pair<at::Tensor, at::Tensor>> gradients = {};

    void copy_inputs(const Batch& batch) const;
    at::Tensor replay();
  };

  Recording* find(const Conditions& conditions);
  /// Errors: throws kUnsupported if the work cannot be repeated.
  static at::Tensor run_first(const Batch& batch, const Work& work);
  static void keep_gradients(
      const torch::nn::Module& net,
      Recording& recording);
  Recording& record(
      const torch::nn::Module& net,
      Conditions conditions,
      const Batch& batch,
      const Work& work);

  c10::Device device_;
  std::list<Recording> recordings_;
  /// Of the last batch that trained and of the last one that did not.
  Conditions last_trained_ = {};
  Conditions last_tested_ = {};
};

} // namespace lockstep::train
