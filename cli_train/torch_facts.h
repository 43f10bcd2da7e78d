// SPDX-License-Identifier: BSD-3-Clause
//
// What `lockstep-train --facts` tells `lockstep doctor`, which knows no
// LibTorch.
#pragma once

#include <string>

namespace lockstep::cli_train {

/// {"findings": [{"group", "name", "value", "health", "remedy"}, ...]} on one
/// line: LibTorch's version, build and folder, threads, bfloat16, the devices,
/// what the name of this machine stands for. Healths are those of
/// cli/doctor.h. Starts CUDA, where there is a driver.
std::string torch_facts();

} // namespace lockstep::cli_train
