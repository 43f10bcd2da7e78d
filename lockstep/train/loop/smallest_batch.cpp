// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/loop/smallest_batch.h"

#include <algorithm>
#include <exception>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "lockstep/tensor/internal/batch_norms.h"

namespace lockstep::train {
namespace {

// Of a batch over devices: the last one gets what is left.
std::int64_t last_share(std::int64_t batch, std::int64_t devices) {
  const std::int64_t share = (batch + devices - 1) / devices;
  return (batch - 1) % share + 1;
}

bool has_batch_norm(const torch::nn::Module& net) {
  return std::ranges::any_of(net.modules(), [](const auto& module) {
    return is_batch_norm(*module);
  });
}

} // namespace

std::int64_t
smallest_share(std::int64_t samples, std::int64_t batch, std::int64_t devices) {
  const std::int64_t last_batch = (samples - 1) % batch + 1;
  return std::min(
      last_share(last_batch, devices),
      last_share(std::min(batch, samples), devices));
}

void check_smallest_batch(const Setup& setup) {
  if (setup.train_samples == 0) {
    return;
  }
  const std::int64_t share = smallest_share(
      (setup.train_samples + setup.group.size() - 1) / setup.group.size(),
      setup.train_data->options().batch_size,
      std::ssize(setup.devices));
  if (share > 1 || !has_batch_norm(setup.model.module())) {
    return;
  }
  std::vector<std::int64_t> shape = setup.train_set->sample_shape();
  shape.insert(shape.begin(), 1);
  try {
    const at::NoGradGuard no_grad;
    setup.model.try_forward(at::zeros(shape));
  } catch (const std::exception& error) {
    if (const auto found = one_value_error(error.what())) {
      raise(*found);
    }
  }
}

std::optional<Error> one_value_error(std::string_view text) {
  if (text.find("Expected more than 1 value per channel") ==
      std::string_view::npos) {
    return {};
  }
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .op = "train",
      .message =
          "a batch norm cannot train on one value per channel: a batch, or the "
          "last one of an epoch, has one image on a device, and its map one "
          "pixel",
      .hint =
          "take larger images or another batch size; --max-train-samples "
          "changes the last batch of an epoch"};
}

} // namespace lockstep::train
