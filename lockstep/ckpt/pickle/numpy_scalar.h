// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "lockstep/ckpt/pickle/global_calls.h"

namespace lockstep::ckpt {

/// `numpy.float64(91.5)`, pickled as `scalar(dtype('f8'), bytes)`: Python's
/// number of the same value, which the safe loader takes. Texts, dates, objects
/// and numbers of more than 64 bits are kept as they are.
CallResult call_numpy_scalar(const Tuple& args);

} // namespace lockstep::ckpt
