// SPDX-License-Identifier: BSD-3-Clause
//
// Where a loss was that threw.
//   try { strategy.step(batch); }
//   catch (const Exception& error) {
//     raise_with_place(error, "in epoch 1, step 3 of 12, samples 257 to 384");
//   }
#pragma once

#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/strings.h"

namespace lockstep::train {

/// The detail of the error of a loss that throws.
inline constexpr std::string_view kLossFailed = "E_LOSS_FAILED";

/// Throws `exception` again, and of a loss that threw says where it was.
[[noreturn]] inline void raise_with_place(
    const Exception& exception,
    std::string_view place) {
  Error error = exception.error();
  if (error.detail == kLossFailed) {
    error.message = format("{}; {}", error.message, place);
  }
  raise(std::move(error));
}

} // namespace lockstep::train
