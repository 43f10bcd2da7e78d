// SPDX-License-Identifier: BSD-3-Clause
#include "cli_train/bench_job.h"

#include <optional>

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "lockstep/device/autocast.h"
#include "lockstep/models/internal/layer_times.h"
#include "lockstep/tensor/internal/kernel_choice.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::cli_train {
namespace {

std::shared_ptr<Model> moved(std::shared_ptr<Model> net, c10::Device device) {
  net->to(device);
  return net;
}

} // namespace

BenchJob::BenchJob(const BenchRequest& request, const std::string& kernels)
    : device_(request.device),
      net_(moved(make_requested(request.model), request.device)),
      optimizer_(*net_, {.lr = 1e-4, .momentum = 0.9}),
      is_autocast_(request.amp != "off"),
      has_channels_last_(request.channels_last || want_channels_last(kernels)) {
  if (has_channels_last_) {
    // Images come packed, as from a loader.
    to_memory_format(*net_, at::MemoryFormat::ChannelsLast);
  }
  const ModelRequest& model = request.model;
  images_ =
      at::randn(
          {model.batch_size, model.in_channels, model.img_size, model.img_size})
          .to(device_);
  targets_ =
      at::randint(model.num_classes, {model.batch_size}, at::kLong).to(device_);
}

void BenchJob::make_gradients() {
  loss().backward();
}

void BenchJob::update() {
  optimizer_.step();
  optimizer_.zero_grad();
}

void BenchJob::finish() const {
  finish_work(device_);
}

at::Tensor BenchJob::loss() {
  std::optional<Autocast> autocast;
  if (is_autocast_) {
    autocast.emplace(device_.type(), at::kBFloat16);
  }
  return at::cross_entropy_loss(net_->forward(images_), targets_);
}

} // namespace lockstep::cli_train
