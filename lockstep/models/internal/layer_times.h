// SPDX-License-Identifier: BSD-3-Clause
//
// Where the time of a training step goes, layer by layer.
//   LayerClock clock(*net);
//   clock.observe([&] { loss_of(*net).backward(); });
//   for (const LayerTime& layer : clock.layers()) { ... }
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <c10/core/Device.h>
#include <torch/nn/module.h>

namespace lockstep {

/// Waits for what `device` still has to do; nothing on the CPU.
void finish_work(c10::Device device);

/// One module that has parameters of its own, or an operation that takes none.
struct LayerTime {
  /// "layer1.0.conv1", empty for the module itself; "relu" for an operation.
  std::string name = {};
  /// "Conv2d"; empty for an operation.
  std::string type = {};
  /// Over all steps observed. Units: seconds.
  double forward_seconds = 0;
  double backward_seconds = 0;
  /// Lockstep's kernels that took part, as they call themselves: "product".
  std::set<std::string> kernels = {};
};

/// Observes the operations of this thread as the dispatcher sees them. What an
/// operation itself calls counts as its own; an operation belongs to the module
/// whose parameters it or what it calls takes, and its gradient goes with it.
class LayerClock {
 public:
  /// `module` is not kept. Parameters must keep their memory, on one device.
  explicit LayerClock(const torch::nn::Module& module);

  /// Runs `step` and adds its times. Work of other threads, such as the
  /// replicas of a DataParallel, is left out. On a device that works on its own
  /// each operation is waited for, so a step takes longer than usual.
  /// Errors: throws what `step` throws; its times then count up to there.
  void observe(const std::function<void()>& step);

  /// Modules in the order of the tree, then operations in the order in which
  /// they were first seen. Layers that were not called have no time.
  [[nodiscard]] const std::vector<LayerTime>& layers() const {
    return layers_;
  }

  // What the dispatcher's callbacks need.
  class Observation;

 private:
  void add(const std::string& name, const torch::nn::Module& module);
  std::size_t row_of_operation(const std::string& name);

  c10::Device device_ = c10::kCPU;
  std::vector<LayerTime> layers_ = {};
  /// By where the bytes of a parameter lie.
  std::unordered_map<const void*, std::size_t> owners_ = {};
  std::unordered_map<std::string, std::size_t> operations_ = {};
};

} // namespace lockstep
