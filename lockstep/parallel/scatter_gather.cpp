// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/parallel/scatter_gather.h"

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::parallel {

std::vector<TensorList> scatter(
    const TensorList& inputs,
    std::span<const c10::Device> devices,
    std::int64_t dim) {
  if (inputs.empty()) {
    return std::vector<TensorList>(1);
  }
  std::vector<TensorList> shards;
  for (const at::Tensor& input : inputs) {
    const auto chunks =
        input.chunk(static_cast<std::int64_t>(devices.size()), dim);
    if (shards.empty()) {
      shards.resize(chunks.size());
    }
    if (chunks.size() != shards.size()) {
      raise(
          {.code = ErrorCode::kInvalidArgument,
           .op = "parallel.scatter",
           .message = format(
               "inputs split into different numbers of pieces: {} rows give "
               "{}, {} rows give {}",
               inputs.front().size(dim),
               shards.size(),
               input.size(dim),
               chunks.size()),
           .hint = "give all inputs the same batch size"});
    }
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      shards[i].push_back(chunks[i].to(devices[i]));
    }
  }
  return shards;
}

at::Tensor
gather(const TensorList& parts, c10::Device device, std::int64_t dim) {
  if (!parts.front().defined()) {
    return {};
  }
  TensorList here;
  here.reserve(parts.size());
  for (const at::Tensor& part : parts) {
    here.push_back(part.to(device));
  }
  const bool all_scalars = std::ranges::all_of(here, [](const at::Tensor& t) {
    return t.dim() == 0;
  });
  if (all_scalars && dim == 0) {
    TORCH_WARN_ONCE(
        "Was asked to gather along dimension 0, but all input tensors were "
        "scalars; will instead unsqueeze and return a vector.");
    return at::stack(here);
  }
  return at::cat(here, dim);
}

} // namespace lockstep::parallel
