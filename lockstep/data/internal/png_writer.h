// SPDX-License-Identifier: BSD-3-Clause
//
// Pictures for people: contact sheets and masks.
//   write_png(image, "sheet.png", real_fs());
#pragma once

#include <string>

#include "lockstep/base/fs.h"
#include "lockstep/data/image_file.h"

namespace lockstep::internal {

/// Writes an image of 1 or 3 channels, whole or not at all.
/// Errors: throws kInvalidArgument for other images, kIo.
void write_png(const Image& image, const std::string& path, FileSystem& fs);

} // namespace lockstep::internal
