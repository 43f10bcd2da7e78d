// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/changed_inputs.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::parallel {
namespace {

void check_is_no_view(const at::Tensor& input, std::size_t place) {
  if (!input.is_view()) {
    return;
  }
  raise(
      {.code = ErrorCode::kUnsupported,
       .op = "parallel.forward",
       .message = format(
           "forward changes input {} in place, which takes a gradient and is a "
           "view of another tensor",
           place),
       .hint = "pass input.clone(), or make the first layer not in place"});
}

} // namespace

void find_changes(ReplicaPass& pass) {
  for (std::size_t i = 0; i < pass.inputs.size(); ++i) {
    const at::Tensor& input = pass.inputs[i];
    if (!input.defined() || input.is_inference() || input._version() == 0) {
      continue;
    }
    pass.changed.push_back(i);
    if (pass.input_edges[i].is_valid()) {
      pass.outputs.push_back(input);
    }
  }
}

void write_back(
    std::span<const ReplicaPass> passes,
    const TensorList& inputs,
    c10::Device home,
    std::int64_t dim) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& input = inputs[i];
    if (!input.defined() || input.device() != home) {
      continue;
    }
    std::int64_t start = 0;
    for (const ReplicaPass& pass : passes) {
      const at::Tensor& shard = pass.inputs[i];
      const std::int64_t rows = shard.size(dim);
      if (std::ranges::find(pass.changed, i) != pass.changed.end()) {
        if (pass.input_edges[i].is_valid()) {
          check_is_no_view(input, i);
        }
        if (!shard.is_alias_of(input)) {
          input.data().narrow(dim, start, rows).copy_(shard);
        }
        input.unsafeGetTensorImpl()->bump_version();
      }
      start += rows;
    }
  }
}

} // namespace lockstep::parallel
