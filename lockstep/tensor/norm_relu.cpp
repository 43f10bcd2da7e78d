// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/tensor/norm_relu.h"

#include <atomic>

#include <ATen/TensorOperators.h>

namespace lockstep {
namespace {

std::atomic<bool> norms_are_followed{false};
thread_local Following* following = nullptr;

} // namespace

bool are_norms_followed() {
  return norms_are_followed;
}

void set_norms_followed(bool are_followed) {
  norms_are_followed = are_followed;
}

Following::Following(at::Tensor addend) : addend_(std::move(addend)) {
  following = this;
}

Following::~Following() {
  if (following == this) {
    following = nullptr;
  }
}

Following* Following::take() {
  return std::exchange(following, nullptr);
}

at::Tensor Following::complete(at::Tensor normalised) const {
  if (is_done_) {
    return normalised;
  }
  if (addend_.defined()) {
    normalised += addend_;
  }
  return normalised.relu_();
}

} // namespace lockstep
