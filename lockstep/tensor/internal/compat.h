// SPDX-License-Identifier: BSD-3-Clause
//
// The only file that looks at TORCH_VERSION_*. LibTorch promises no binary
// compatibility between minor versions, so what programs enter by (replicas,
// state dictionaries, checkpoints) calls `check_torch_version()` first.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/headeronly/version.h>

#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 11 || \
    TORCH_VERSION_MINOR > 15
#error "Lockstep works with LibTorch 2.11 to 2.15; see scripts/requirements.txt"
#endif

namespace lockstep {

/// A new node of the autograd graph, in the pointer that its edges hold.
template <class T, class... Arguments>
auto make_node(Arguments&&... arguments) {
#if TORCH_VERSION_MINOR >= 13
  return c10::make_intrusive<T>(std::forward<Arguments>(arguments)...);
#else
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the deleter's
  return std::shared_ptr<T>(
      new T(std::forward<Arguments>(arguments)...),
      torch::autograd::deleteNode);
#endif
}

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
