// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/step/precision.h"

#include <array>

#include <ATen/Context.h>

#include "lockstep/base/strings.h"
#include "lockstep/device/autocast.h"
#include "lockstep/tensor/internal/cpu_features.h"
#include "lockstep/train/step/device_choice.h"

namespace lockstep::train {
namespace {

// Of at::Float32MatmulPrecision, in its order.
constexpr std::array<std::string_view, 3> kPrecisions{
    "highest",
    "high",
    "medium"};

std::string_view precision_in_use() {
  const auto precision = at::globalContext().float32MatmulPrecision();
  return kPrecisions.at(static_cast<std::size_t>(precision));
}

} // namespace

std::string decided_amp(const TrainConfig& config) {
  if (config.amp != "auto") {
    return config.amp;
  }
  const bool is_cuda = names_cuda(choose_devices(config).spec);
  return is_bfloat16_fast(is_cuda ? at::kCUDA : at::kCPU) ? "bf16" : "off";
}

std::optional<c10::ScalarType> autocast_type(std::string_view amp) {
  return amp == "bf16"   ? std::optional(at::kBFloat16)
         : amp == "fp16" ? std::optional(at::kHalf)
                         : std::nullopt;
}

void set_precision(const TrainConfig& config) {
  if (config.precision != kPrecisions.front()) {
    at::globalContext().setFloat32MatmulPrecision(config.precision);
  }
}

std::string precision_text(const TrainConfig& config, bool is_cuda) {
  std::string text = config.amp;
  if (text == "bf16" && !is_cuda) {
    text += format(" by {}", lockstep::to_string(bfloat16_products()));
  }
  const std::string_view precision = precision_in_use();
  return precision == kPrecisions.front()
             ? text
             : text + format(", precision {}", precision);
}

} // namespace lockstep::train
