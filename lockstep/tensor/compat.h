// SPDX-License-Identifier: BSD-3-Clause
//
// The only file that looks at TORCH_VERSION_*. LibTorch promises no binary
// compatibility between minor versions, so what programs enter by (replicas,
// state dictionaries, checkpoints) calls `check_torch_version()` first.
#pragma once

#include <string>
#include <string_view>

#include <torch/headeronly/version.h>

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR != 13
#error "Lockstep is written for LibTorch 2.13; see scripts/requirements.txt"
#endif

namespace lockstep {

/// Version of the LibTorch headers this was compiled with: "2.13.0".
inline constexpr const char* kTorchHeaderVersion = TORCH_VERSION;

/// Version of the LibTorch library that is loaded: "2.13.0".
std::string torch_library_version();

/// Errors: throws kUnavailable if the loaded library has another major or
/// minor version than the headers; the text names both. Once it was right,
/// calls cost nothing.
void check_torch_version();
/// The same against a version given as text.
void check_torch_version(std::string_view loaded);

} // namespace lockstep
