// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/hooks_off.h"

#include <torch/csrc/autograd/variable.h>

namespace lockstep::parallel {

HooksOff::HooksOff(const TensorList& tensors) {
  for (const at::Tensor& tensor : tensors) {
    auto& hooks = torch::autograd::impl::hooks(tensor);
    if (!hooks.empty()) {
      saved_.emplace_back(tensor, std::move(hooks));
      hooks.clear();
    }
  }
}

HooksOff::~HooksOff() {
  for (auto& [tensor, hooks] : saved_) {
    torch::autograd::impl::hooks(tensor) = std::move(hooks);
  }
}

} // namespace lockstep::parallel
