// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/inference/outputs.h"

#include <cmath>
#include <string>
#include <utility>

#include <ATen/ops/argmax.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {
namespace {

[[noreturn]] void refuse_outputs(ErrorCode code, std::string message) {
  raise(
      {.code = code,
       .op = "train.use",
       .message = std::move(message),
       .detail = "E_TASK"});
}

void check_outputs(
    const at::Tensor& outputs,
    std::int64_t dims,
    const TrainedData& data) {
  if (outputs.dim() != dims || outputs.size(1) != data.num_outputs()) {
    refuse_outputs(
        ErrorCode::kMismatch,
        format(
            "the model gives {}; expected {} numbers in dimension 1 of {}",
            c10::str(outputs.sizes()),
            data.num_outputs(),
            dims));
  }
}

at::Tensor on_host(const at::Tensor& outputs) {
  return outputs.to(at::kCPU, at::kFloat).contiguous();
}

} // namespace

bool is_above(double a, double b) {
  return std::isnan(a) ? !std::isnan(b) : a > b;
}

at::Tensor
scores_of(const at::Tensor& outputs, OutputKind kind, const TrainedData& data) {
  at::Tensor numbers = on_host(outputs);
  switch (kind) {
    case OutputKind::kClasses:
      check_outputs(numbers, /*dims=*/2, data);
      return at::softmax(numbers, /*dim=*/1);
    case OutputKind::kLabels:
      check_outputs(numbers, /*dims=*/2, data);
      return at::sigmoid(numbers);
    case OutputKind::kValues:
      if (data.target.shape.empty() && numbers.dim() == 1) {
        return numbers.unsqueeze(1);
      }
      check_outputs(numbers, /*dims=*/2, data);
      return numbers;
    case OutputKind::kMasks:
      check_outputs(numbers, /*dims=*/4, data);
      return at::softmax(numbers, /*dim=*/1);
    case OutputKind::kMaps:
      break;
  }
  return numbers;
}

at::Tensor masks_of(const at::Tensor& outputs, const TrainedData& data) {
  constexpr std::int64_t kMostClasses = 256;
  check_outputs(outputs, /*dims=*/4, data);
  if (data.num_classes > kMostClasses) {
    refuse_outputs(
        ErrorCode::kUnsupported,
        format(
            "a mask of 8 bits tells {} classes apart, the model has {}",
            kMostClasses,
            data.num_classes));
  }
  return outputs.argmax(/*dim=*/1).to(at::kCPU, at::kByte).contiguous();
}

} // namespace lockstep::train
