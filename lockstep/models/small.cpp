// SPDX-License-Identifier: BSD-3-Clause
#include <torch/nn/modules/activation.h>

#include "lockstep/base/error.h"
#include "lockstep/models/classification.h"
#include "lockstep/tensor/modules.h"

namespace lockstep {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kImageSize = 32;

} // namespace

TheModelClass::TheModelClass(const ModelOptions& options)
    : conv1(nn::Conv2dOptions(options.in_channels, 6, 5)),
      pool(nn::MaxPool2dOptions(2).stride(2)),
      conv2(nn::Conv2dOptions(6, 16, 5)),
      fc1(16 * 5 * 5, 120),
      fc2(120, 84),
      fc3(84, options.num_classes) {
  register_children();
}

at::Tensor TheModelClass::forward(const at::Tensor& x) {
  if (x.dim() != 4 || x.size(2) != kImageSize || x.size(3) != kImageSize) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "models.TheModelClass",
         .message = "expected images of 32 x 32, got " + size_text(x.sizes()),
         .hint = "enlarge them, or take a ResNet",
         .detail = "E_IMAGE_SIZE"});
  }
  at::Tensor out = pool->forward(conv1->forward(x).relu());
  out = pool->forward(conv2->forward(out).relu());
  out = fc1->forward(out.flatten(1)).relu();
  return fc3->forward(fc2->forward(out).relu());
}

MyModule::MyModule() : fc(3, 5) {
  register_children();
}

at::Tensor MyModule::forward(const at::Tensor& x) {
  return fc->forward(x);
}

MLP::MLP(const MLPOptions& options) {
  layers->push_back(nn::Flatten());
  std::int64_t in = options.in_features;
  for (const std::int64_t out : options.hidden) {
    layers->push_back(nn::Linear(in, out));
    layers->push_back(nn::ReLU());
    in = out;
  }
  layers->push_back(nn::Linear(in, options.num_classes));
  register_children();
}

at::Tensor MLP::forward(const at::Tensor& x) {
  return layers->forward(x);
}

} // namespace lockstep
