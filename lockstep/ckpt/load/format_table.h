// SPDX-License-Identifier: BSD-3-Clause
//
// All formats, one row each. `load` and `save` go through these tables.
#pragma once

#include <span>

#include "lockstep/ckpt/format.h"

namespace lockstep::ckpt {

/// Asked in this order; the first that claims an input reads it.
std::span<const FormatReader> format_readers();

std::span<const FormatWriter> format_writers();

} // namespace lockstep::ckpt
