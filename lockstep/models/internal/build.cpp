// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/models/internal/build.h"

#include <iterator>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/tensor/modules.h"
#include "lockstep/tensor/norm_relu.h"

namespace lockstep::internal {

namespace nn = torch::nn;

nn::Conv2d resnet_stem(std::int64_t in_channels) {
  nn::Conv2d layer(
      nn::Conv2dOptions(in_channels, 64, 7).stride(2).padding(3).bias(false));
  return layer;
}

at::Tensor through(nn::SequentialImpl& layers, at::Tensor x) {
  for (auto layer = layers.begin(); layer != layers.end(); ++layer) {
    auto* const norm = exactly<nn::BatchNorm2dImpl>(*layer->ptr());
    if (norm != nullptr) {
      check_norm_input(*norm, x);
    }
    const auto next = std::next(layer);
    const bool is_relu =
        next != layers.end() && exactly<nn::ReLUImpl>(*next->ptr()) != nullptr;
    if (norm != nullptr && is_relu) {
      x = batch_norm_relu(norm, x);
      layer = next;
    } else {
      x = layer->forward(x);
    }
  }
  return x;
}

void check_norm_input(const nn::BatchNorm2dImpl& norm, const at::Tensor& x) {
  if (norm.is_training() && x.dim() > 1 && x.numel() == x.size(1)) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "models.forward",
         .message = "Expected more than 1 value per channel when training, got "
                    "input size " +
                    size_text(x.sizes()),
         .hint = "give every device two images or more; a last batch of one "
                 "can be left out",
         .detail = "E_BATCH_OF_ONE"});
  }
}

} // namespace lockstep::internal
