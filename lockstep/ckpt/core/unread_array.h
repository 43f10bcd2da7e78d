// SPDX-License-Identifier: BSD-3-Clause
//
// An array of a NumPy archive that is no tensor: it stands in the tree without
// its content, so that no copy loses it without a word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/ckpt/value.h"
#include "lockstep/ckpt/walk.h"

namespace lockstep::ckpt::internal {

/// The class of the object that stands for it.
inline constexpr std::string_view kUnreadArray = "numpy.ndarray";

/// Names of those in `root`, in its order.
std::vector<std::string> unread_arrays(const Value& root);

/// Names of the arrays of two trees that are no tensors, each once: unread
/// ones, and those of pickles, which stand there as the call that makes them.
/// Errors: kUnsafe (E_DEPTH); kUnsafe (E_LIMIT) beyond the bounds.
Result<std::vector<std::string>>
arrays_in(const Value& a, const Value& b, const WalkBounds& bounds);

/// Errors: kUnsupported (E_NOT_TENSOR) if there is one: no format holds it.
Status check_arrays_read(const Value& root);

} // namespace lockstep::ckpt::internal
