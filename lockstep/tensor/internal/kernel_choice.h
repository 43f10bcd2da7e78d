// SPDX-License-Identifier: BSD-3-Clause
//
// Whose kernels a run computes with, for what does not know of others than
// LibTorch's: `lockstep::kernels`, if a program links it and calls its
// `install` (kernels/install.h), says here how it is asked.
#pragma once

#include <string_view>

namespace lockstep {

/// Whether the kernels that `choice` stands for are fastest with channels last.
constexpr bool want_channels_last(std::string_view choice) {
  return choice == "lockstep";
}

/// What kernels beside LibTorch's offer.
struct OwnKernels {
  /// As `choose_kernels`.
  void (*choose)(std::string_view choice) = nullptr;
  /// The rules by which "lockstep" computes: other ones, other bits.
  std::string_view rules = {};
};

/// Null in a program that has called no `kernels::install`. Threads: any.
const OwnKernels* own_kernels();
/// Ownership: `kernels` is of static duration.
void set_own_kernels(const OwnKernels& kernels);

/// Makes the process compute with what `choice` stands for: "exact" is
/// `kernels::install()`, "lockstep" `install` with all options, "torch"
/// `uninstall()`. Without own kernels "exact" is LibTorch's, which have the
/// same bits. Threads: while no other thread computes convolutions or batch
/// norms. Errors: throws kUnavailable for "lockstep" without own kernels.
void choose_kernels(std::string_view choice);

} // namespace lockstep
