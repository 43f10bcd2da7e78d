// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/data/collate.h"

#include <limits>

#include <ATen/ops/stack.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"
#include "lockstep/tensor/modules.h"

namespace lockstep::internal {
namespace {

[[noreturn]] void cannot_collate(std::string message) {
  raise(
      {.code = ErrorCode::kMismatch,
       .op = "data.collate",
       .message = std::move(message),
       .detail = "E_DATA_OPTION"});
}

} // namespace

at::Tensor stack_samples(const std::vector<const at::Tensor*>& samples) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(samples.size());
  for (const at::Tensor* sample : samples) {
    if (!sample->defined()) {
      cannot_collate(format(
          "sample {} of the batch is an undefined tensor",
          tensors.size()));
    }
    if (sample->sizes() != samples.front()->sizes()) {
      cannot_collate(format(
          "samples of one batch must have one shape: sample 0 has {}, sample "
          "{} {}",
          tuple_text(samples.front()->sizes()),
          tensors.size(),
          tuple_text(sample->sizes())));
    }
    tensors.push_back(*sample);
  }
  return at::stack(tensors);
}

void raise_other_parts(std::size_t first, std::size_t other) {
  cannot_collate(format(
      "samples of one batch must have as many parts: sample 0 has {}, another "
      "{}",
      first,
      other));
}

void raise_no_key() {
  cannot_collate("samples of one batch must have the same keys");
}

void raise_other_form(const std::string& first, const std::string& other) {
  cannot_collate(format(
      "samples of one batch must be built alike: sample 0 is {}, another {}",
      first,
      other));
}

void raise_too_large(std::size_t place, std::uint64_t number) {
  cannot_collate(format(
      "whole numbers of a batch are int64, up to {}: sample {} is {}",
      std::numeric_limits<std::int64_t>::max(),
      place,
      number));
}

void raise_number(const std::string& number) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.collate",
       .message = format(
           "a sample holds {} beside tensors: the batch would have that of its "
           "first sample",
           number),
       .hint = "give it as a tensor",
       .detail = "E_DATA_OPTION"});
}

void raise_unnamed() {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = "data.collate",
       .message = "the Structure of a sample leaves members out: the batch "
                  "would have those of its first sample",
       .hint = "name all members in it, as tensors, or write a "
               "lockstep::Collate for the type",
       .detail = "E_DATA_OPTION"});
}

} // namespace lockstep::internal
