// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/optim/internal/scratch.h"

#include <algorithm>

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/neg.h>

namespace lockstep::internal {

at::Tensor Scratch::get(const at::Tensor& like) {
  if (!like.is_non_overlapping_and_dense()) {
    return at::empty_like(like);
  }
  const auto fits = [&](const at::Tensor& buffer) {
    return buffer.scalar_type() == like.scalar_type() &&
           buffer.device() == like.device();
  };
  auto found = std::ranges::find_if(buffers_, fits);
  if (found == buffers_.end()) {
    found = buffers_.insert(found, at::empty({like.numel()}, like.options()));
  } else if (found->numel() < like.numel()) {
    found->reset(); // free the old one first
    *found = at::empty({like.numel()}, like.options());
  }
  return found->as_strided(like.sizes(), like.strides(), 0);
}

void WorkingGrad::negate() {
  at::Tensor out = scratch_.get(grad_);
  at::neg_out(out, grad_);
  grad_ = std::move(out);
  is_temporary_ = true;
}

void WorkingGrad::add(const at::Tensor& other, double alpha) {
  if (is_temporary_) {
    grad_.add_(other, alpha);
    return;
  }
  // With equal layouts the kernel walks memory as it would for a fresh result,
  // so the bits are those of `grad.add(other)`.
  if (grad_.strides() == other.strides() &&
      grad_.scalar_type() == other.scalar_type()) {
    at::Tensor out = scratch_.get(grad_);
    at::add_out(out, grad_, other, alpha);
    grad_ = std::move(out);
  } else {
    grad_ = at::add(grad_, other, alpha);
  }
  is_temporary_ = true;
}

} // namespace lockstep::internal
