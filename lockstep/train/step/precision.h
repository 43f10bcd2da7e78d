// SPDX-License-Identifier: BSD-3-Clause
//
// In which types a run computes: `--amp` and `--precision`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <c10/core/ScalarType.h>

#include "lockstep/train/settings/config.h"

namespace lockstep::train {

/// `config.amp`, with "auto" decided: "bf16" where the devices of the run are
/// known to be fast with it, else "off".
/// Errors: as `choose_devices`.
std::string decided_amp(const TrainConfig& config);

/// The type of `Autocast` for a decided `amp`; none for "off".
std::optional<c10::ScalarType> autocast_type(std::string_view amp);

/// Python's torch.set_float32_matmul_precision, for the process. "highest", the
/// default, leaves what a program has set.
void set_precision(const TrainConfig& config);

/// "off", "bf16 by avx512_bf16, precision high": what decides about bits, for
/// which processors multiply bfloat16 in several ways. `config.amp` is decided.
std::string precision_text(const TrainConfig& config, bool is_cuda);

} // namespace lockstep::train
