// SPDX-License-Identifier: BSD-3-Clause
#include "lockstep/train/precision.h"

#include <ATen/Context.h>

#include "lockstep/base/strings.h"
#include "lockstep/device/autocast.h"
#include "lockstep/tensor/cpu_features.h"

namespace lockstep::train {

bool uses_bfloat16(const TrainConfig& config, bool is_cuda) {
  return config.amp == "auto" ? is_bfloat16_fast(is_cuda ? at::kCUDA : at::kCPU)
                              : config.amp == "bf16";
}

void set_precision(const TrainConfig& config) {
  at::globalContext().setFloat32MatmulPrecision(config.precision);
}

std::string precision_text(const TrainConfig& config, bool is_cuda) {
  std::string amp = uses_bfloat16(config, is_cuda) ? "bf16" : "off";
  if (amp == "bf16" && !is_cuda) {
    amp += format(" by {}", lockstep::to_string(bfloat16_products()));
  }
  return config.precision == "highest"
             ? amp
             : amp + ", precision " + config.precision;
}

} // namespace lockstep::train
