// SPDX-License-Identifier: BSD-3-Clause
//
// In which types a run computes: `--amp` and `--precision`.
#pragma once

#include <string>

#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// Whether forward and loss run under torch.autocast with bfloat16. "auto" says
/// so where that is fast: of the processor, or of the current CUDA device.
bool uses_bfloat16(const TrainConfig& config, bool is_cuda);

/// Python's torch.set_float32_matmul_precision, for the process.
void set_precision(const TrainConfig& config);

/// "off", "bf16 by avx512_bf16, precision high": what decides about bits, for
/// which processors multiply bfloat16 in several ways.
std::string precision_text(const TrainConfig& config, bool is_cuda);

} // namespace lockstep::train
