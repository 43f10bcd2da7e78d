// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures as PNG files, 8 bits a channel.
#pragma once

#include <string>

#include "lockstep/data/images.h"

namespace lockstep::internal {

/// The bytes of a file. Errors: throws kInvalidArgument for an image that has
/// no pixels, or neither 1 nor 3 channels.
std::string encode_png(const Image& image);

} // namespace lockstep::internal
