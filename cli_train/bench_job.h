// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep bench` measures: a model in training, on one random batch.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "cli_train/bench_request.h"
#include "lockstep/models/model.h"
#include "lockstep/optim/optimizers.h"

namespace lockstep::cli_train {

/// A model, its optimizer and its batch.
class BenchJob {
 public:
  /// In the layout that `lockstep train --kernels KERNELS` has.
  BenchJob(const BenchRequest& request, const std::string& kernels);

  /// Forward, loss and backward.
  void make_gradients();

  void update();
  /// Waits for what the device still has to do.
  void finish() const;

  [[nodiscard]] Model& net() {
    return *net_;
  }
  /// Shape: [batch, channels, height, width].
  [[nodiscard]] const at::Tensor& images() const {
    return images_;
  }
  [[nodiscard]] bool has_channels_last() const {
    return has_channels_last_;
  }

 private:
  at::Tensor loss();

  c10::Device device_;
  std::shared_ptr<Model> net_;
  SGD optimizer_;
  bool is_autocast_;
  bool has_channels_last_;
  at::Tensor images_ = {};
  at::Tensor targets_ = {};
};

} // namespace lockstep::cli_train
