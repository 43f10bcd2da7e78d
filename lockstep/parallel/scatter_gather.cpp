// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/device/internal/streams.h"
#include "lockstep/parallel/functional.h"

namespace lockstep::parallel {

namespace {

[[noreturn]] void different_pieces(
    const at::Tensor& a,
    std::size_t pieces_of_a,
    const at::Tensor& b,
    std::size_t pieces_of_b,
    std::int64_t dim) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "parallel.scatter",
       .message = format(
           "inputs split into different numbers of pieces: {} rows give {}, {} "
           "rows give {}",
           a.size(dim),
           pieces_of_a,
           b.size(dim),
           pieces_of_b),
       .hint = "give all inputs the same batch size"});
}

// As many as every defined input gives.
std::size_t count_pieces(
    const TensorList& inputs,
    const std::vector<TensorList>& chunks,
    std::size_t without_tensors,
    std::int64_t dim) {
  const std::size_t none = inputs.size();
  std::size_t first = none;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      continue;
    }
    if (first == none) {
      first = i;
    }
    if (chunks[i].size() != chunks[first].size()) {
      different_pieces(
          inputs[first],
          chunks[first].size(),
          inputs[i],
          chunks[i].size(),
          dim);
    }
  }
  return first == none ? without_tensors : chunks[first].size();
}

// Autograd runs a copy's backward in the stream of the copy; a batch that takes
// gradients stays in the caller's streams.
at::Tensor send(
    const at::Tensor& part,
    c10::Device device,
    std::size_t place,
    std::span<const c10::Stream> streams) {
  if (part.device() == device) {
    return part;
  }
  if (streams.empty() || !part.is_cpu() || part.requires_grad()) {
    return part.to(device);
  }
  return copy_in_stream(part, streams[place]);
}

} // namespace

std::vector<TensorList> scatter(
    const TensorList& inputs,
    std::span<const c10::Device> devices,
    std::int64_t dim,
    std::span<const c10::Stream> streams) {
  std::vector<TensorList> chunks(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) {
      chunks[i] =
          inputs[i].chunk(static_cast<std::int64_t>(devices.size()), dim);
    }
  }
  const std::size_t pieces =
      count_pieces(inputs, chunks, inputs.empty() ? 1 : devices.size(), dim);
  std::vector<TensorList> shards(pieces);
  for (std::size_t p = 0; p < pieces; ++p) {
    shards[p].reserve(inputs.size());
    for (const TensorList& parts : chunks) {
      shards[p].push_back(
          parts.empty() ? at::Tensor()
                        : send(parts[p], devices[p], p, streams));
    }
  }
  return shards;
}

void check_same_forms(std::span<const std::string> forms) {
  if (forms.empty()) {
    raise(
        {.code = ErrorCode::kInvalidArgument,
         .op = "parallel.gather",
         .message = "Expected at least one tensor to gather from"});
  }
  for (std::size_t i = 1; i < forms.size(); ++i) {
    if (forms[i] != forms.front()) {
      raise(
          {.code = ErrorCode::kMismatch,
           .op = "parallel.gather",
           .message = format(
               "replica {} returned {}, replica 0 returned {}",
               i,
               forms[i],
               forms.front()),
           .hint = "return the same keys and as many tensors for every part of "
                   "a batch"});
    }
  }
}

void check_no_numbers(std::span<const std::string> numbers) {
  if (numbers.size() == 1) {
    return;
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!numbers[i].empty()) {
      raise(
          {.code = ErrorCode::kUnsupported,
           .op = "parallel.gather",
           .message = format(
               "replica {} returned {} beside tensors: a number of its part of "
               "the batch, of which none of the whole can be made",
               i,
               numbers[i]),
           .hint = "return it as a tensor, or not at all; on one device it is "
                   "that of the whole batch"});
    }
  }
}

at::Tensor
gather(const TensorList& parts, c10::Device device, std::int64_t dim) {
  if (!parts.front().defined()) {
    return {};
  }
  TensorList here;
  here.reserve(parts.size());
  for (const at::Tensor& part : parts) {
    here.push_back(part.device() == device ? part : part.to(device));
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
