// SPDX-License-Identifier: BSD-3-Clause
//
// How one step is spread over devices. The trainer's loop is the same for all:
//   auto strategy = make_strategy(config, model, devices);
//   at::Tensor out = strategy->forward(batch.images);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "lockstep/base/workers.h"
#include "lockstep/models/model.h"
#include "lockstep/parallel/intra_op_threads.h"
#include "lockstep/train/config.h"

namespace lockstep::train {

/// Runs a model on one or more devices. Threads: one caller at a time.
class Strategy {
 public:
  Strategy() = default;
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  /// Shape: as the model's forward; the output is on the first device.
  virtual at::Tensor forward(const at::Tensor& images) = 0;
  /// Threads for the optimizer's step; none for one device.
  [[nodiscard]] virtual Workers workers() const = 0;
  /// See `ReplicaGroup::share_threads`; nullptr for one device.
  [[nodiscard]] virtual std::unique_ptr<parallel::IntraOpThreadsGuard>
  share_threads() const = 0;
  /// Switches the model and its replicas between training and testing.
  virtual void train(bool on) = 0;
  /// "single" or "data_parallel".
  [[nodiscard]] virtual std::string name() const = 0;
};

/// The strategy `config.strategy` names; "auto" is data_parallel when there
/// are several devices. Moves `model` to the first device. CPU replicas share
/// the process's threads (`at::get_num_threads`) evenly.
/// Errors: throws kInvalidArgument for "single" with several devices.
std::unique_ptr<Strategy> make_strategy(
    const TrainConfig& config,
    std::shared_ptr<Model> model,
    std::span<const c10::Device> devices);

} // namespace lockstep::train
