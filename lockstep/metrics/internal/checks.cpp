// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/metrics/internal/checks.h"

#include <cmath>
#include <utility>

#include <c10/core/ScalarType.h>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::internal {
namespace {

[[noreturn]] void refuse_metric(
    std::string_view metric,
    std::string message,
    std::string hint,
    std::string detail) {
  raise(
      {.code = ErrorCode::kInvalidArgument,
       .op = format("metrics.{}", metric),
       .message = std::move(message),
       .hint = std::move(hint),
       .detail = std::move(detail)});
}

std::string shape_text(at::IntArrayRef sizes) {
  std::vector<std::string> parts;
  parts.reserve(sizes.size());
  for (const std::int64_t size : sizes) {
    parts.push_back(std::to_string(size));
  }
  return format("[{}]", join(parts, ", "));
}

std::string dtype_text(const at::Tensor& tensor) {
  return std::string(c10::getDtypeNames(tensor.scalar_type()).first);
}

bool is_integer(const at::Tensor& tensor) {
  return c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
}

void check_real(
    std::string_view metric,
    std::string_view name,
    const at::Tensor& tensor) {
  if (!tensor.defined()) {
    refuse_metric_input(metric, format("there are no {}", name));
  }
  if (tensor.layout() != at::kStrided || tensor.is_complex()) {
    refuse_metric_input(
        metric,
        format(
            "{}: expected dense real numbers, got {}{}",
            name,
            tensor.layout() == at::kStrided ? "" : "sparse ",
            dtype_text(tensor)));
  }
}

} // namespace

void refuse_metric_option(std::string_view metric, std::string message) {
  refuse_metric(metric, std::move(message), {}, "E_METRIC_OPTION");
}

void refuse_metric_input(
    std::string_view metric,
    std::string message,
    std::string hint) {
  refuse_metric(metric, std::move(message), std::move(hint), "E_METRIC_INPUT");
}

void check_at_least(
    std::string_view metric,
    std::string_view field,
    std::int64_t value,
    std::int64_t least) {
  if (value < least) {
    refuse_metric_option(
        metric,
        format("{}: expected {} or more, got {}", field, least, value));
  }
}

void check_pair(
    std::string_view metric,
    const at::Tensor& outputs,
    const at::Tensor& targets) {
  check_real(metric, "outputs", outputs);
  check_real(metric, "targets", targets);
  if (!outputs.is_floating_point()) {
    refuse_metric_input(
        metric,
        format(
            "outputs: expected a floating-point dtype, got {}",
            dtype_text(outputs)),
        "give the model's outputs, not the predicted classes");
  }
  if (outputs.device() != targets.device()) {
    refuse_metric_input(
        metric,
        format(
            "expected outputs and targets on one device, got {} and {}",
            outputs.device().str(),
            targets.device().str()));
  }
}

void check_shape(
    std::string_view metric,
    const at::Tensor& outputs,
    std::span<const std::int64_t> shape,
    std::string_view text) {
  bool is_same = outputs.dim() == std::ssize(shape);
  for (std::size_t i = 0; is_same && i < shape.size(); ++i) {
    is_same =
        shape[i] < 0 || outputs.size(static_cast<std::int64_t>(i)) == shape[i];
  }
  if (!is_same) {
    refuse_metric_input(
        metric,
        format(
            "outputs: expected the shape {}, got {}",
            text,
            shape_text(outputs.sizes())));
  }
}

void check_like_outputs(
    std::string_view metric,
    const at::Tensor& outputs,
    const at::Tensor& targets) {
  if (outputs.sizes() == targets.sizes()) {
    return;
  }
  const bool is_column =
      outputs.dim() != targets.dim() && outputs.numel() == targets.numel();
  refuse_metric_input(
      metric,
      format(
          "targets: expected the shape of the outputs, {}, got {}",
          shape_text(outputs.sizes()),
          shape_text(targets.sizes())),
      is_column ? "squeeze(1) takes a dimension of size 1 away, unsqueeze(1) "
                  "adds one"
                : "");
}

void check_labels(
    std::string_view metric,
    const at::Tensor& outputs,
    const at::Tensor& targets) {
  if (!is_integer(targets)) {
    refuse_metric_input(
        metric,
        format(
            "targets: expected integers, one class each, got {}",
            dtype_text(targets)),
        targets.sizes() == outputs.sizes()
            ? "targets.argmax(1) makes classes of one-hot or mixed targets"
            : "");
  }
  std::vector<std::int64_t> expected = outputs.sizes().vec();
  expected.erase(expected.begin() + 1);
  if (targets.sizes() != at::IntArrayRef(expected)) {
    const bool has_channel =
        targets.dim() == outputs.dim() && targets.size(1) == 1;
    refuse_metric_input(
        metric,
        format(
            "targets: expected the shape {} for outputs of {}, got {}",
            shape_text(expected),
            shape_text(outputs.sizes()),
            shape_text(targets.sizes())),
        has_channel ? "targets.squeeze(1) takes the channel away" : "");
  }
}

void check_sums(
    std::string_view metric,
    std::span<const double> sums,
    std::int64_t size) {
  if (std::ssize(sums) != size) {
    refuse_metric(
        metric,
        format("expected {} sums, got {}", size, sums.size()),
        "add what `sums` of the same metric gave",
        "E_METRIC_SUMS");
  }
}

void check_outside(
    std::string_view metric,
    double outside,
    std::string_view classes,
    std::optional<std::int64_t> ignore_index) {
  if (outside == 0) {
    return;
  }
  refuse_metric(
      metric,
      format(
          "{} of the targets are no class; expected {}{}",
          std::llround(outside),
          classes,
          ignore_index ? format(", or {} for none", *ignore_index) : ""),
      {},
      "E_METRIC_LABEL");
}

std::vector<std::string> row_names(
    std::string_view metric,
    std::span<const std::string> class_names,
    std::int64_t count) {
  if (!class_names.empty() && std::ssize(class_names) != count) {
    refuse_metric_option(
        metric,
        format("class_names: expected {}, got {}", count, class_names.size()));
  }
  std::vector<std::string> names(class_names.begin(), class_names.end());
  names.reserve(static_cast<std::size_t>(count));
  while (std::ssize(names) < count) {
    names.push_back(std::to_string(names.size()));
  }
  return names;
}

} // namespace lockstep::internal
